//! Commits an applied diff: only what the diff changes, whatever else is uncommitted in the work tree.
//!
//! The commit is built before any file is written, by applying the diff to the tree of HEAD and to a copy of the index. If
//! one of them does not fit, nothing changes. Hooks are not run and nothing is signed.

use super::prepare::PreparedDiff;
use super::report::ApplyError;
use crate::author::author;
use crate::error::GitError;
use crate::listing::{path_records, single_line};
use crate::restore_plan::operations_in_progress;
use crate::restore_point::RestorePoint;
use crate::run::Call;
use crate::state::{TreeFiles, tree_files};
use crate::write_restore_point::{differing_objects, pack_into, tree_of};

const COMMIT_INDEX: &str = "commit";
const STAGED_INDEX: &str = "staged-and-applied";

/// A commit that is not on a branch yet, and the index that belongs to it.
#[derive(Debug)]
pub struct PlannedCommit {
    id: String,
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
        if let Some(operation) = operations_in_progress(repository).into_iter().next() {
            return Err(ApplyError::CannotCommit { problem: format!("a {operation} is in progress") });
        }
        let head = self.head.commit.clone();
        let head =
            head.ok_or_else(|| ApplyError::CannotCommit { problem: "there is no commit yet".to_owned() })?;
        scratch.run(COMMIT_INDEX, ["read-tree", &head], b"")?;
        self.apply_to_index(COMMIT_INDEX, diff, "HEAD")?;
        let tree = single_line(&scratch.run(COMMIT_INDEX, ["write-tree"], b"")?);
        scratch.copy_index(STAGED_INDEX)?;
        self.apply_to_index(STAGED_INDEX, diff, "the index")?;
        let index = single_line(&scratch.run(STAGED_INDEX, ["write-tree", "--missing-ok"], b"")?);
        let top = &repository.top_level;
        let mut call = scratch.call("none", ["commit-tree", &tree, "-p", &head, "-F", "-"], top);
        call.variables.extend(author(&scratch.git)?);
        let id = single_line(&scratch.git.run(top, &Call { input: message.as_bytes(), ..call })?);
        let before = tree_files(scratch, &head)?;
        let trees = [tree.as_str(), index.as_str()];
        let mut objects = differing_objects(scratch, &tree_of(scratch, &head)?, trees)?;
        objects.insert(id.clone());
        let target = scratch.repository_objects();
        let others = [scratch.path("objects"), scratch.store().objects()];
        pack_into(scratch, (&target, &others), &target.join("pack/pack"), &objects)?;
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

    /// Applies the diff as [`PreparedDiff::apply`] does, then moves the branch of HEAD to the commit and updates the index.
    pub fn apply_and_commit(
        self,
        reference: &str,
        planned: PlannedCommit,
    ) -> Result<(Option<RestorePoint>, String), ApplyError> {
        let (prepared, point) = self.write_all(reference)?;
        if let Err(error) = prepared.move_branch(&planned).and_then(|()| prepared.update_index(&planned)) {
            return Err(ApplyError::Incomplete {
                problem: format!("the changes were not committed: {error}"),
                point: point.map(|point| point.reference).unwrap_or_default(),
            });
        }
        if let Some(point) = &point {
            prepared.store_end_state(point);
        }
        Ok((point, planned.id))
    }

    /// Fails if HEAD has moved since the diff was checked.
    fn move_branch(&self, planned: &PlannedCommit) -> Result<(), GitError> {
        let name = self.head.branch.as_deref().unwrap_or("HEAD");
        let old = self.head.commit.as_deref().unwrap_or_default();
        let command = format!("update {name}\0{}\0{old}\0", planned.id);
        let repository = &self.scratch.repository;
        repository.update_refs(&self.scratch.git, command.as_bytes(), "mcp-delegator: apply a task")
    }

    /// Writes the entries of the changed files to the index of the user.
    fn update_index(&self, planned: &PlannedCommit) -> Result<(), GitError> {
        let zeros = "0".repeat(2 * self.scratch.id_bytes());
        let paths = planned.before.keys().chain(planned.after.keys());
        let changed = paths.filter(|path| planned.before.get(*path) != planned.after.get(*path));
        let entries = changed.map(|path| match planned.index.get(path) {
            Some((mode, id)) => (format!("{mode} {id}"), path),
            None => (format!("0 {zeros}"), path),
        });
        let entries = path_records(entries);
        let index = self.scratch.repository.index();
        let args = ["update-index", "--replace", "-z", "--index-info"];
        self.scratch.run(&index.to_string_lossy(), args, &entries).map(drop)
    }
}
