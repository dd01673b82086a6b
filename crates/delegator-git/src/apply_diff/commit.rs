//! Commits an applied diff: only what the diff changes, whatever else is uncommitted in the work tree.
//!
//! The commit is built before any file is written, by applying the diff to the tree of HEAD and to a copy of
//! the index. If one of them does not fit, nothing changes. Hooks are not run and nothing is signed.

use std::collections::BTreeMap;

use super::prepare::PreparedDiff;
use super::report::ApplyError;
use crate::error::{GitError, Result};
use crate::index::IndexFile;
use crate::records::{FileVersion, RepoPath, output_text};
use crate::repository::author;
use crate::run::Call;
use crate::tree_writer::RefChange;

const COMMIT_INDEX: &str = "commit";
const STAGED_INDEX: &str = "staged-and-applied";
const NEW_INDEX: &str = "new";

/// A commit that is not on a branch yet, and the index that belongs to it.
#[derive(Debug)]
pub struct PlannedCommit {
    pub id: String,
    entries: BTreeMap<RepoPath, Option<FileVersion>>,
}

impl PreparedDiff {
    pub fn plan_commit(&self, diff: &[u8], message: &str) -> Result<PlannedCommit, ApplyError> {
        let scratch = &self.scratch;
        let repository = &scratch.repository;
        if let Some(operation) = repository.operations_in_progress().into_iter().next() {
            return Err(ApplyError::CannotCommit { problem: format!("a {operation} is in progress") });
        }
        let Some(head) = &self.head.commit else {
            return Err(ApplyError::CannotCommit { problem: "there is no commit yet".to_owned() });
        };
        scratch.run(COMMIT_INDEX, ["read-tree", head], b"")?;
        self.apply_to_index(COMMIT_INDEX, diff, "HEAD")?;
        let tree = scratch.read(COMMIT_INDEX, ["write-tree"])?;
        scratch.copy_index(STAGED_INDEX)?;
        self.apply_to_index(STAGED_INDEX, diff, "the index")?;
        let index = scratch.write_tree(STAGED_INDEX)?;
        let mut call = scratch.call("none", ["commit-tree", &tree, "-p", head, "-F", "-"]);
        call.variables.extend(author(&scratch.git, Some(&repository.git_dir))?);
        let id = output_text(&scratch.run_call(Call { input: message.as_bytes(), ..call })?);
        let committed = scratch.tree_of(head)?;
        let mut objects = scratch.list_objects([tree.as_str(), &index, "--not", &committed])?;
        objects.insert(id.clone());
        scratch.pack_into(&scratch.repository_objects(), "pack", &objects)?;
        let (before, after) = (scratch.tree_files(head)?, scratch.tree_files(&tree)?);
        let index = scratch.tree_files(&index)?;
        let paths = before.keys().chain(after.keys());
        let changed = paths.filter(|path| before.get(*path) != after.get(*path));
        let entries = changed.map(|path| (path.clone(), index.get(path).cloned())).collect();
        Ok(PlannedCommit { id, entries })
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
    pub(super) fn committed_index(&self, planned: &PlannedCommit) -> Result<IndexFile> {
        self.scratch.copy_index(NEW_INDEX)?;
        let entries = planned.entries.iter().map(|(path, version)| (path, version.as_ref()));
        self.scratch.edit_index(NEW_INDEX, entries)?;
        IndexFile::read_copy(&self.scratch, NEW_INDEX)
    }
}
