//! What a task changed in its worktree, a branch with it, and the removal of the worktree.

use std::fs;
use std::io;
use std::path::Path;

use super::start_store::Start;
use super::{TaskWorktree, WorktreeError};
use crate::error::GitError;
use crate::run::Git;
use crate::work_tree_diff::{Listed, NewCommit, WorkTreeDiff, list};

impl TaskWorktree {
    /// What changed in the worktree since it was created, without what the setup changed. The diff applies to the state that
    /// the worktree started from.
    pub fn diff(&self, git: &Git, temp_dir: &Path) -> Result<WorkTreeDiff, GitError> {
        let index = self.repository().index();
        // Without it, tracked files that are not on disk or are ignored would look deleted.
        fs::metadata(&index).map_err(GitError::io("read", &index))?;
        let listed: Listed = list(git, &self.repository(), temp_dir)?;
        let store = self.start_store();
        store.attach(&listed.scratch)?;
        let base = store.tree(Start::Carried)?.unwrap_or_else(|| self.source.commit.clone());
        let before = listed.files_of(&store.tree(Start::AfterSetup)?.unwrap_or_else(|| base.clone()))?;
        WorkTreeDiff::since(listed, &base, &before)
    }

    /// Creates a branch with the commits of the agent, and one more commit if they do not end in the state of the diff.
    /// Returns its last commit.
    pub fn create_branch(
        &self,
        git: &Git,
        diff: &WorkTreeDiff,
        commit: NewCommit<'_>,
    ) -> Result<String, WorktreeError> {
        let source = self.source.repository();
        let reference = format!("refs/heads/{}", commit.branch);
        if source.resolve_ref(git, &reference)?.is_some() {
            return Err(WorktreeError::BranchExists { branch: commit.branch.to_owned() });
        }
        let id = diff.store_commit(git, &self.source.commit, &commit)?;
        let command = format!("create {reference}\0{id}\0");
        source.update_refs(git, command.as_bytes(), "mcp-delegator: branch of a task")?;
        Ok(id)
    }

    /// Deletes the git directory of the worktree and its branch. The caller deletes the files and the store.
    pub fn remove(&self, git: &Git) -> Result<(), GitError> {
        let git_dir = self.git_dir();
        match fs::remove_dir_all(&git_dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(GitError::io("delete", git_dir)(error));
            }
            _ => {}
        }
        // With the repository, its branches are gone.
        if !self.source.common_dir.exists() {
            return Ok(());
        }
        let source = self.source.repository();
        let reference = format!("refs/heads/{}", self.branch);
        match source.resolve_ref(git, &reference)? {
            Some(id) => {
                let command = format!("delete {reference}\0{id}\0");
                source.update_refs(git, command.as_bytes(), "mcp-delegator: worktree removed")
            }
            None => Ok(()),
        }
    }
}
