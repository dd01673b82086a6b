//! Applies a prepared restore: files first, then the index, then, on request, HEAD and its branch.
//!
//! git's own index lock is held throughout, so no other git command changes the index meanwhile.
//! `tree_writer` makes all changes or none. Nothing may change before the undo point exists.

use std::path::Path;

use super::plan::PreparedRestore;
use super::target::{HeadTarget, IndexEdits, IndexTarget};
use crate::diff::{RawChange, changed_on_disk};
use crate::error::{GitError, Operation, RestoreError, Result, WriteError};
use crate::index::{IndexEntry, IndexFile};
use crate::records::{display_path, lines, output_text, path_records};
use crate::restore_point::{RestorePoint, StoredIndex};
use crate::tree_writer::{RefChange, TreeWriter, WritePlan};

impl PreparedRestore {
    /// Fails if HEAD's branch is checked out in another work tree. Call this before anything is changed.
    pub fn check_head(&self) -> Result<(), RestoreError> {
        let is_moved = self.plan.head_target == HeadTarget::Moves;
        let Some(branch) = self.point.branch.as_ref().filter(|_| is_moved) else { return Ok(()) };
        let repository = &self.scratch.repository;
        match repository.worktree_of(&self.scratch.git, branch)? {
            Some(worktree) if Path::new(&worktree) != repository.top_level => {
                Err(RestoreError::CheckedOutElsewhere { branch: branch.clone(), worktree })
            }
            _ => Ok(()),
        }
    }

    /// Restores files and index, and with `and_head` also HEAD and its branch. `undo` is the restore point of
    /// the present state. Must not be called if the plan has overlaps.
    pub fn apply(self, undo: &RestorePoint, and_head: bool) -> Result<(), RestoreError> {
        let no_undo = GitError::unexpected("restore point");
        let writer = self.writer.as_ref().ok_or(no_undo)?;
        Ok(writer.write(&self.scratch, Some(undo), || self.write_plan(writer, and_head))?)
    }

    fn write_plan(&self, writer: &TreeWriter, and_head: bool) -> Result<WritePlan<'_>, WriteError> {
        writer.lock_index()?;
        self.refuse_if_changed()?;
        let mut plan = WritePlan {
            operation: Operation::Restore,
            changes: &self.changes,
            stamps: &self.stamps,
            index: None,
            refs: Vec::new(),
            attach: None,
            head: self.plan.head.clone(),
        };
        if and_head && self.plan.head_target == HeadTarget::Moves {
            plan.refs.extend(self.ref_change()?);
            plan.attach.clone_from(&self.point.branch);
            plan.head = self.point.head();
        }
        plan.index = self.new_index()?;
        Ok(plan)
    }

    /// Changes made since the undo point was created are not in it, so they must not be overwritten.
    fn refuse_if_changed(&self) -> Result<(), WriteError> {
        let is_planned = |change: &&RawChange| {
            self.changes.write.contains_key(&change.path) || self.changes.remove.contains(&change.path)
        };
        if let Some(change) = changed_on_disk(&self.scratch)?.iter().find(is_planned) {
            return Err(WriteError::changed_file(&display_path(&change.path)));
        }
        self.present.refuse_if_index_changed(&self.scratch)
    }

    /// The index after the restore, whose objects are then in the repository; `None` if it does not change.
    fn new_index(&self) -> Result<Option<IndexFile>> {
        let point = &self.point;
        let index = match (&self.target.index, point.index, &point.index_tree) {
            (IndexTarget::Unchanged, ..) | (IndexTarget::Saved(_), StoredIndex::Tree, None) => {
                return Ok(None);
            }
            (IndexTarget::Edited(edits), ..) => self.edited_index(edits)?,
            (IndexTarget::Saved(_), StoredIndex::Tree, Some(tree)) => self.index_of_tree(tree)?,
            (IndexTarget::Saved(index), StoredIndex::File | StoredIndex::Missing, _) => index.clone(),
        };
        self.copy_index_objects(&index)?;
        Ok(Some(index))
    }

    /// Returns a copy of the present index with these entries replaced.
    fn edited_index(&self, edits: &IndexEdits) -> Result<IndexFile> {
        let (scratch, name) = (&self.scratch, "new");
        scratch.copy_index(name)?;
        let removed = edits.paths.iter().map(|path| (scratch.removed_entry(), path));
        let text = |entry: &IndexEntry| format!("{:o} {} {}\t", entry.mode, entry.id(), entry.stage);
        let added = edits.entries.iter().map(|entry| (text(entry), &entry.path));
        let input = path_records(removed.chain(added));
        scratch.run(name, ["update-index", "-z", "--index-info"], &input)?;
        let assumed_unchanged = edits.entries.iter().filter(|entry| entry.assume_unchanged);
        let paths = assumed_unchanged.map(|entry| &entry.path);
        scratch.update_index(name, &["--assume-unchanged"], paths)?;
        let skipped = edits.entries.iter().filter(|entry| entry.skip_worktree);
        scratch.update_index(name, &["--skip-worktree"], skipped.map(|entry| &entry.path))?;
        IndexFile::read_copy(scratch, name)
    }

    /// Returns a copy of the present index with the entries of `tree`. Cached file metadata of unchanged
    /// entries is preserved.
    fn index_of_tree(&self, tree: &str) -> Result<IndexFile> {
        let (scratch, name) = (&self.scratch, "new");
        scratch.copy_index(name)?;
        let flagged = self.present.index.entries.iter().filter(|entry| entry.is_special());
        scratch.update_index(name, &["--force-remove"], flagged.map(|entry| &entry.path))?;
        scratch.run(name, ["read-tree", "--reset", tree], b"")?;
        IndexFile::read_copy(scratch, name)
    }

    /// The user's git does not read our store, so objects that the index names and only the store has are
    /// copied to the repository.
    fn copy_index_objects(&self, index: &IndexFile) -> Result<()> {
        let scratch = &self.scratch;
        if index.bytes.is_none() {
            return Ok(());
        }
        let repository_objects = scratch.repository_objects();
        let ids = lines(index.objects());
        let check = ["cat-file", "--buffer", "--batch-check"];
        let output = scratch.run_in_objects(&repository_objects, &[], check, ids.as_bytes())?;
        let output = output_text(&output);
        let missing = output.lines().filter_map(|line| line.strip_suffix(" missing")).map(str::to_owned);
        // Objects that are in neither place were missing before, as in a partial clone.
        let missing = scratch.existing_objects(missing.collect())?;
        scratch.pack_into(&repository_objects, "pack", &missing).map(drop)
    }

    /// The change of the branch that HEAD named, or of a detached HEAD.
    fn ref_change(&self) -> Result<Option<RefChange>> {
        let new = self.point.head.clone();
        let Some(branch) = &self.point.branch else {
            return Ok(new.map(|new| RefChange { name: "HEAD".to_owned(), old: None, new: Some(new) }));
        };
        let old = self.scratch.repository.resolve_ref(&self.scratch.git, branch)?;
        Ok(Some(RefChange { name: branch.clone(), old, new }))
    }
}
