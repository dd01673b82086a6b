//! Applies a prepared restore: files first, then the index, then, on request, HEAD and its branch.
//!
//! git's own index lock is held throughout, so no other git command changes the index meanwhile.
//! `tree_writer` makes all changes or none. Nothing may change before the undo point exists.

use std::path::Path;

use super::plan::PreparedRestore;
use super::target::{HeadTarget, IndexEdits, IndexTarget};
use crate::capture::{RAW_DIFF_ARGS, WORK_INDEX};
use crate::diff::{RawChange, parse_raw_diff};
use crate::error::{GitError, Operation, RestoreError, WriteError};
use crate::index::IndexFile;
use crate::records::{display_path, join_records, path_records};
use crate::restore_point::{RestorePoint, StoredIndex};
use crate::scratch::{existing_objects, pack_into};
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
        let no_undo = GitError::UnexpectedOutput { command: "restore point" };
        let writer = self.writer.as_ref().ok_or(no_undo)?;
        Ok(writer.write(&self.scratch, Some(undo), || self.write_plan(writer, and_head))?)
    }

    fn write_plan(&self, writer: &TreeWriter, and_head: bool) -> Result<WritePlan<'_>, WriteError> {
        writer.lock_index()?;
        self.refuse_if_changed()?;
        let (refs, attach) = if and_head { self.head_changes()? } else { (Vec::new(), None) };
        let head = if and_head && self.plan.head_target == HeadTarget::Moves {
            self.point.head()
        } else {
            self.plan.head.clone()
        };
        Ok(WritePlan {
            operation: Operation::Restore,
            changes: &self.changes,
            stamps: &self.stamps,
            index: self.new_index()?,
            refs,
            attach,
            head,
        })
    }

    /// Changes made since the undo point was created are not in it, so they must not be overwritten.
    fn refuse_if_changed(&self) -> Result<(), WriteError> {
        let changed = parse_raw_diff(&self.scratch.run(WORK_INDEX, RAW_DIFF_ARGS, b"")?)?;
        let is_planned = |change: &&RawChange| {
            self.changes.write.contains_key(&change.path) || self.changes.remove.contains(&change.path)
        };
        if let Some(change) = changed.iter().find(is_planned) {
            let what = format!("the file {}", display_path(&change.path));
            return Err(WriteError::ConcurrentChange { what });
        }
        self.present.refuse_if_index_changed(&self.scratch)
    }

    /// The index after the restore, whose objects are then in the repository; `None` if it does not change.
    fn new_index(&self) -> Result<Option<IndexFile>, GitError> {
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
    fn edited_index(&self, edits: &IndexEdits) -> Result<IndexFile, GitError> {
        let (scratch, name) = (&self.scratch, "new");
        scratch.copy_index(name)?;
        let no_id = "0".repeat(2 * scratch.id_bytes());
        let removed = edits.paths.iter().map(|path| (format!("0 {no_id}\t"), path));
        let added = edits
            .entries
            .iter()
            .map(|entry| (format!("{:o} {} {}\t", entry.mode, entry.id(), entry.stage), &entry.path));
        let input = path_records(removed.chain(added));
        scratch.run(name, ["update-index", "-z", "--index-info"], &input)?;
        let entries = || edits.entries.iter();
        let entries_by_flag = [
            ("--assume-unchanged", entries().filter(|entry| entry.assume_unchanged).collect::<Vec<_>>()),
            ("--skip-worktree", entries().filter(|entry| entry.skip_worktree).collect()),
        ];
        for (flag, flagged) in entries_by_flag.iter().filter(|(_, flagged)| !flagged.is_empty()) {
            let paths = join_records(flagged.iter().map(|entry| &entry.path));
            scratch.run(name, ["update-index", "-z", flag, "--stdin"], &paths)?;
        }
        IndexFile::read_copy(scratch, name)
    }

    /// Returns a copy of the present index with the entries of `tree`. Cached file metadata of unchanged
    /// entries is preserved.
    fn index_of_tree(&self, tree: &str) -> Result<IndexFile, GitError> {
        let (scratch, name) = (&self.scratch, "new");
        scratch.copy_index(name)?;
        let flagged = self.present.index.entries.iter().filter(|entry| entry.is_special());
        let flagged = join_records(flagged.map(|entry| &entry.path));
        if !flagged.is_empty() {
            scratch.run(name, ["update-index", "-z", "--force-remove", "--stdin"], &flagged)?;
        }
        scratch.run(name, ["read-tree", "--reset", tree], b"")?;
        IndexFile::read_copy(scratch, name)
    }

    /// The user's git does not read our store, so objects that the index names and only the store has are
    /// copied to the repository.
    fn copy_index_objects(&self, index: &IndexFile) -> Result<(), GitError> {
        let scratch = &self.scratch;
        if index.bytes.is_none() {
            return Ok(());
        }
        let repository_objects = scratch.repository_objects();
        let ids: String = index.objects().into_iter().map(|id| format!("{id}\n")).collect();
        let check = ["cat-file", "--buffer", "--batch-check"];
        let output = scratch.run_in_objects(&repository_objects, &[], check, ids.as_bytes())?;
        let output = String::from_utf8_lossy(&output);
        let missing = output.lines().filter_map(|line| line.strip_suffix(" missing")).map(str::to_owned);
        // Objects that are in neither place were missing before, as in a partial clone.
        let missing = existing_objects(scratch, missing.collect())?;
        pack_into(scratch, &repository_objects, "pack", &missing).map(drop)
    }

    /// The refs to change, and the branch that HEAD names afterwards.
    fn head_changes(&self) -> Result<(Vec<RefChange>, Option<String>), GitError> {
        if self.plan.head_target != HeadTarget::Moves {
            return Ok((Vec::new(), None));
        }
        let (repository, git) = (&self.scratch.repository, &self.scratch.git);
        let new = self.point.head.clone();
        Ok(match &self.point.branch {
            Some(branch) => {
                let old = repository.resolve_ref(git, branch)?;
                (vec![RefChange { name: branch.clone(), old, new }], Some(branch.clone()))
            }
            None if new.is_none() => (Vec::new(), None),
            None => (vec![RefChange { name: "HEAD".to_owned(), old: None, new }], None),
        })
    }
}
