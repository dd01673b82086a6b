//! What a task changed in its worktree, a branch with it, and the removal of the worktree.

use std::fs;
use std::path::Path;

use super::agent_files::detach_agent_objects;
use super::source::WorktreeError;
use super::task_worktree::{AFTER_SETUP, CARRIED, TaskWorktree};
use crate::capture::{Ignored, LeftOut, LeftOutReason};
use crate::error::Result;
use crate::files::{copy_file, remove_directory};
use crate::run::Git;
use crate::task_diff::{History, Listed, NewCommit, TreeListing, WorkTreeDiff, list_in};
use crate::tree_writer::{RefChange, TreeWriter};

/// Refs with more commits than this are not compared with the user's repository.
const MAX_COMPARED_COMMITS: usize = 100;

impl TaskWorktree {
    /// What changed in the worktree since it was created, without what the setup changed. The diff applies to
    /// the state that the worktree started from.
    pub fn diff(&self, git: &Git, temp_dir: &Path) -> Result<WorkTreeDiff> {
        let listed = self.list(git, temp_dir)?;
        self.attach_start_objects(&listed.scratch)?;
        let base = self.start_tree(CARRIED)?.unwrap_or_else(|| self.source.commit.clone());
        let after_setup = self.start_tree(AFTER_SETUP)?;
        let files = listed.scratch.tree_files(after_setup.as_ref().unwrap_or(&base))?;
        let before = TreeListing { files, unread: self.unread_after_setup()? };
        let mut diff = WorkTreeDiff::since(listed, &base, &before)?;
        if !diff.diff.has_changes() && !self.new_commits().is_empty() {
            diff.left_out.push(LeftOut::new(self.branch.as_bytes(), LeftOutReason::Commits, 0));
        }
        Ok(diff)
    }

    /// The files of the worktree, whatever happened to its git directory; ignored ones only with their
    /// stamps.
    pub(super) fn list(&self, git: &Git, temp_dir: &Path) -> Result<Listed> {
        let mut scratch = self.scratch(git, temp_dir)?;
        if !self.private_file("index").is_some_and(|index| index.is_file()) {
            // A linked worktree. Only its own index knows which files a sparse checkout leaves off the disk.
            scratch.repository.git_dir = scratch.path("info");
            let (own, copy) = (self.git_dir().join("index"), scratch.repository.index());
            let is_file = fs::symlink_metadata(&own).is_ok_and(|found| found.is_file());
            let is_usable = is_file && !self.agent_tracked(&scratch).is_empty();
            if !is_usable || copy_file(&own, &copy).is_err() {
                scratch.run(&copy.to_string_lossy(), ["read-tree", &self.source.commit], b"")?;
            }
        }
        let needed = self.agent_tracked(&scratch);
        let mut listed = list_in(scratch, &needed)?;
        let ignored = Ignored::list(&listed.scratch)?;
        listed.add_ignored(ignored);
        Ok(listed)
    }

    /// Creates a branch with the commits of the agent, and one more commit if they do not end in the state of
    /// the diff. Returns its last commit.
    pub fn create_branch(
        &self,
        git: &Git,
        diff: &WorkTreeDiff,
        commit: NewCommit<'_>,
    ) -> Result<String, WorktreeError> {
        let source = &self.source.repository;
        let reference = format!("refs/heads/{}", commit.branch);
        let writer = TreeWriter::open(git, source, &reference)?.0;
        let (base, head) = (&self.source.commit, self.agent_head());
        let head = head.as_deref().filter(|_| self.attach_agent_objects(&diff.scratch).is_ok());
        let history = History { git, source: Some(&source.git_dir), base, head };
        if let Some(id) = source.resolve_ref(git, &reference)? {
            // An earlier run that was killed may have created it.
            if diff.is_last_commit(&history, &id, commit.message) {
                return Ok(id);
            }
            return Err(WorktreeError::BranchExists { branch: commit.branch.to_owned() });
        }
        // A damaged history is left behind; the files are in one commit then.
        let with_history = head.and_then(|_| diff.store_commit(&history, &commit).ok());
        let id = match with_history {
            Some(id) => id,
            None => {
                detach_agent_objects(&diff.scratch);
                diff.store_commit(&History { head: None, ..history }, &commit)?
            }
        };
        writer.change_ref(RefChange { name: reference, old: None, new: Some(id.clone()) })?;
        Ok(id)
    }

    pub fn branch_commit(&self, git: &Git, branch: &str) -> Result<Option<String>, WorktreeError> {
        Ok(self.source.repository.resolve_ref(git, &format!("refs/heads/{branch}"))?)
    }

    /// Whether the worktree has commits that no branch, tag or remote branch of the user's repository has.
    pub fn has_unique_commits(&self, git: &Git) -> Result<bool> {
        let commits = self.new_commits();
        if commits.is_empty() || commits.len() > MAX_COMPARED_COMMITS {
            return Ok(!commits.is_empty());
        }
        let mut args: Vec<String> = ["rev-list", "--max-count=1"].map(str::to_owned).into();
        args.extend(commits);
        // The branch of a linked worktree is one of the user's repository.
        args.extend(["--not".to_owned(), format!("--exclude={}", self.branch)]);
        args.extend(["--branches", "--tags", "--remotes"].map(str::to_owned));
        // git fails on a commit that the repository does not have.
        Ok(self.source.repository.run(git, args).map_or(true, |found| !found.is_empty()))
    }

    /// Deletes the git directory of the worktree and its ref. The caller deletes the files and the store.
    pub fn remove(&self, git: &Git) -> Result<()> {
        remove_directory(&self.own_dir())?;
        let (source, reference) = (&self.source.repository, self.reference());
        // Only this worktree uses the ref, so a lock was left behind or planted.
        let _ = fs::remove_file(source.common_dir.join(format!("{reference}.lock")));
        // The writer also removes the lock on all packed refs that a killed removal left.
        let delete = |writer: TreeWriter| match source.resolve_ref(git, &reference)? {
            Some(id) => writer.change_ref(RefChange { name: reference.clone(), old: Some(id), new: None }),
            None => Ok(()),
        };
        let deleted = TreeWriter::open(git, source, &reference).map(|(writer, _)| delete(writer));
        // A ref that cannot be deleted, or not even read, is no reason to keep a worktree.
        if !matches!(deleted, Ok(Ok(()))) || self.private_dir.is_none() {
            let _ = fs::remove_file(source.common_dir.join(&reference));
        }
        Ok(())
    }
}
