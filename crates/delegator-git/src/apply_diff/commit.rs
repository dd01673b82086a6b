//! Commits an applied diff: only what the diff changes, whatever else is uncommitted in the work tree.
//!
//! The commit is built before any file is written, by applying the diff to the tree of HEAD and to a copy of
//! the index. If one of them does not fit, nothing changes. Hooks are not run and nothing is signed.

use super::prepare::PreparedDiff;
use super::report::ApplyError;
use crate::error::GitError;
use crate::file_version::TreeFiles;
use crate::index::IndexFile;
use crate::records::single_line;
use crate::repository::author;
use crate::run::Call;
use crate::scratch::{differing_objects, edit_index, pack_into, tree_files, tree_of, write_tree};
use crate::tree_writer::RefChange;

const COMMIT_INDEX: &str = "commit";
const STAGED_INDEX: &str = "staged-and-applied";
const NEW_INDEX: &str = "new";

/// A commit that is not on a branch yet, and the index that belongs to it.
#[derive(Debug)]
pub struct PlannedCommit {
    pub id: String,
    /// The files of HEAD and of the new commit.
    before: TreeFiles,
    after: TreeFiles,
    index: TreeFiles,
}

impl PreparedDiff {
    /// Builds the commit of a diff on top of HEAD.
    pub fn plan_commit(&self, diff: &[u8], message: &str) -> Result<PlannedCommit, ApplyError> {
        let scratch = &self.scratch;
        let repository = &scratch.repository;
        if let Some(operation) = repository.operations_in_progress().into_iter().next() {
            return Err(ApplyError::CannotCommit { problem: format!("a {operation} is in progress") });
        }
        let head = self.head.commit.clone();
        let head =
            head.ok_or_else(|| ApplyError::CannotCommit { problem: "there is no commit yet".to_owned() })?;
        scratch.run(COMMIT_INDEX, ["read-tree", &head], b"")?;
        self.apply_to_index(COMMIT_INDEX, diff, "HEAD")?;
        let tree = scratch.read_line(COMMIT_INDEX, ["write-tree"])?;
        scratch.copy_index(STAGED_INDEX)?;
        self.apply_to_index(STAGED_INDEX, diff, "the index")?;
        let index = write_tree(scratch, STAGED_INDEX)?;
        let top = &repository.top_level;
        let mut call = scratch.call("none", ["commit-tree", &tree, "-p", &head, "-F", "-"], top);
        call.variables.extend(author(&scratch.git, Some(repository))?);
        let id = single_line(&scratch.git.run(top, Call { input: message.as_bytes(), ..call })?);
        let before = tree_files(scratch, &head)?;
        let trees = [tree.as_str(), index.as_str()];
        let mut objects = differing_objects(scratch, &tree_of(scratch, &head)?, trees)?;
        objects.insert(id.clone());
        pack_into(scratch, &scratch.repository_objects(), "pack", &objects)?;
        Ok(PlannedCommit {
            id,
            before,
            after: tree_files(scratch, &tree)?,
            index: tree_files(scratch, &index)?,
        })
    }

    fn apply_to_index(&self, index: &str, diff: &[u8], name: &str) -> Result<(), ApplyError> {
        let args = ["apply", "--cached", "--3way", "--whitespace=nowarn", "-"];
        match self.scratch.run(index, args, diff) {
            Err(GitError::Failed { .. }) => {
                Err(ApplyError::CannotCommit { problem: format!("the changes do not fit to {name}") })
            }
            applied => Ok(applied.map(drop)?),
        }
    }

    /// The commit of HEAD, if it has this message and nothing is left to change: an earlier run made it.
    pub fn existing_commit(&self, message: &str) -> Result<Option<String>, ApplyError> {
        let Some(head) = self.head.commit.as_ref().filter(|_| self.changes.is_empty()) else {
            return Ok(None);
        };
        let found = self.scratch.run("none", ["log", "-1", "--format=%B", head], b"")?;
        let is_same = String::from_utf8_lossy(&found).trim() == message.trim();
        Ok(is_same.then(|| head.clone()))
    }

    /// Fails when it is made if HEAD has moved since the diff was checked.
    pub(super) fn branch_change(&self, planned: &PlannedCommit) -> RefChange {
        let name = self.head.branch.clone().unwrap_or_else(|| "HEAD".to_owned());
        RefChange { name, old: self.head.commit.clone(), new: Some(planned.id.clone()) }
    }

    /// The index of the user with the entries of the changed files.
    pub(super) fn committed_index(&self, planned: &PlannedCommit) -> Result<IndexFile, GitError> {
        let paths = planned.before.keys().chain(planned.after.keys());
        let changed = paths.filter(|path| planned.before.get(*path) != planned.after.get(*path));
        self.scratch.copy_index(NEW_INDEX)?;
        edit_index(&self.scratch, NEW_INDEX, changed.map(|path| (path, planned.index.get(path))))?;
        IndexFile::read_copy(&self.scratch, NEW_INDEX)
    }
}
