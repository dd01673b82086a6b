//! Plans a restore: determines everything it would change, before anything changes.
//!
//! The plan is the difference of two states: the target (`target`) and the present one. Files that differ are
//! written or removed. Everything on the present side is in the undo point. Never touched: ignored files (by
//! the present rules and by those of the restore point), files that either side left out, and other
//! repositories.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::target::{
    HeadTarget, IndexTarget, KeepReason, Overlap, PossibleEdit, RestoreScope, Target, Untouchable,
    possible_edits,
};
use super::task_changes::{ThreeStates, task_changes};
use crate::capture::{LeftOut, Survey, TreeState, capture_present, is_absent};
use crate::error::{RestoreError, Result};
use crate::files::{Stamp, Stamps, contains_only, file_mode};
use crate::index::IndexEntry;
use crate::records::{RepoPath, TreeFiles, ancestors, display_path, on_disk};
use crate::repository::{Head, Repository};
use crate::restore_point::{CommittedTree, EndState, RestorePoint, SavedState, is_name_free, record};
use crate::run::Git;
use crate::scratch::Scratch;
use crate::tree_writer::{TreeChanges, TreeWriter};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub write: Vec<String>,
    /// Those of `write` that retain later edits.
    pub merged: Vec<String>,
    pub remove: Vec<String>,
    /// Files and directories of which only the permissions differ.
    pub modes: Vec<String>,
    pub make_directories: Vec<String>,
    /// Directories that did not exist and are empty once the files are removed.
    pub remove_directories: Vec<String>,
    /// Differs but is left unchanged, with the reason.
    pub keep: Vec<(String, KeepReason)>,
    /// Those of `write` and `remove` that may hold edits of the user, with the reason; `None` if that is not
    /// known, because the state after the task cannot be read.
    pub possible_edits: Option<Vec<(String, PossibleEdit)>>,
    /// Where changes of the task and later changes overlap. If there are any, the restore cannot be applied.
    pub overlaps: Vec<Overlap>,
    pub index_differs: bool,
    pub head_target: HeadTarget,
    pub head: Head,
    /// Operations in progress in the repository, by the names of git's own files.
    pub in_progress: Vec<&'static str>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        let paths =
            [&self.write, &self.remove, &self.modes, &self.make_directories, &self.remove_directories];
        paths.iter().all(|list| list.is_empty()) && !self.index_differs
    }
}

#[derive(Debug)]
pub struct PreparedRestore {
    pub plan: Plan,
    pub(crate) point: RestorePoint,
    pub(crate) scratch: Scratch,
    pub(crate) target: Target,
    pub(crate) present: TreeState,
    pub(crate) changes: TreeChanges,
    /// What the files to change were when they were read.
    pub(crate) stamps: Stamps,
    /// Set with the undo point.
    pub(crate) writer: Option<TreeWriter>,
}

/// Checks whether and how a restore point can be restored. Adds nothing to the repository.
pub fn prepare_restore(
    git: &Git,
    point: &RestorePoint,
    scope: RestoreScope,
    temp_dir: &Path,
) -> Result<PreparedRestore, RestoreError> {
    let (scratch, head) = point.open(git, temp_dir)?;
    scratch.repository.refuse_if_locked()?;
    let top_level = scratch.top();
    let (target, present, mut actions) = find_target(&scratch, point, scope, &head)?;
    check_blocked_paths(top_level, &actions.changes)?;
    check_objects_exist(&scratch, point, &target, &actions.changes)?;
    let blocked = actions.changes.add_directories(top_level, &target.survey, &present.survey);
    let blocked = blocked.iter().map(|path| (display_path(path), KeepReason::FileInPlaceOfDirectory));
    actions.keep.extend(blocked);
    let plan = plan(&target, &actions, &scratch.repository, head);
    let (point, FileActions { changes, stamps, .. }) = (point.clone(), actions);
    Ok(PreparedRestore { plan, point, scratch, target, present, changes, stamps, writer: None })
}

/// Determines the target, captures the present state, and compares them.
fn find_target(
    scratch: &Scratch,
    point: &RestorePoint,
    scope: RestoreScope,
    head: &Head,
) -> Result<(Target, TreeState, FileActions), RestoreError> {
    let top_level = scratch.top();
    let known_end = read_end_state(scratch, point, scope)?;
    let end = known_end.as_ref().filter(|_| scope != RestoreScope::WholeTree);
    let saved = SavedState::read(scratch, point)?;
    let mut before = scratch.tree_files(&point.tree)?;
    before.retain(|path, _| !is_absent(&saved.absent, path));
    let mut needed: BTreeSet<RepoPath> = before.keys().chain(&saved.written).cloned().collect();
    needed.extend(end.iter().flat_map(|end| end.changed.keys()).cloned());
    // Also files that the task created and that were too large to be read. Those that existed and were left
    // out stay.
    let left_out = LeftOut::paths(&point.left_out);
    let unread = end.iter().flat_map(|end| end.unread.keys());
    needed.extend(unread.filter(|path| !left_out.contains(display_path(path).as_str())).cloned());
    let (present, now) = capture_present(scratch, &needed)?;
    let untouchable = Untouchable::find(scratch, point, &saved, &present, &before, &now)?;
    let target = match end {
        None => Target::whole_tree(point, before, saved, &present, point.head() != *head),
        Some(end) => {
            let states = ThreeStates {
                before: &before,
                saved: &saved,
                end,
                now: &now,
                present: &present,
                untouchable: &untouchable,
                top_level,
                later: match scope {
                    RestoreScope::RestoreChanges => KeepReason::ChangedAfterRestore,
                    _ => KeepReason::ChangedLater,
                },
            };
            task_changes(scratch, point, &states, head)?
        }
    };
    let mut actions = plan_files(top_level, &target, &untouchable, &now);
    if scope == RestoreScope::WholeTree {
        actions.keep_uncaptured(&untouchable);
    }
    actions.possible_edits = known_end.map(|end| {
        let is_changed_later = |path: &RepoPath| match end.unread.get(path) {
            Some(stamp) => scratch.stamp(path) != *stamp,
            None => now.get(path) != end.changed.get(path).map_or(target.files.get(path), Option::as_ref),
        };
        let is_whole_tree = scope == RestoreScope::WholeTree;
        possible_edits(&actions.changes, &end, |path| is_whole_tree && is_changed_later(path))
    });
    Ok((target, present, actions))
}

/// The state after the task. A restore of the whole tree only needs it to report whose edits it reverts.
fn read_end_state(
    scratch: &Scratch,
    point: &RestorePoint,
    scope: RestoreScope,
) -> Result<Option<EndState>, RestoreError> {
    let top_level = || scratch.repository.top_level.clone();
    match (EndState::read(scratch, point), scope) {
        (end, RestoreScope::WholeTree) => Ok(end.ok().flatten()),
        (Ok(None), RestoreScope::TaskChanges) => Err(RestoreError::NoEndState { top_level: top_level() }),
        (Ok(None), RestoreScope::RestoreChanges) => {
            Err(RestoreError::UnfinishedRestore { top_level: top_level() })
        }
        (end, _) => end,
    }
}

fn plan(target: &Target, actions: &FileActions, repository: &Repository, head: Head) -> Plan {
    let changes = &actions.changes;
    let names = |paths: &mut dyn Iterator<Item = &RepoPath>| paths.map(|path| display_path(path)).collect();
    let made: BTreeSet<&RepoPath> = changes.make_directories.iter().collect();
    let directory_modes = changes.directory_modes.keys().filter(|path| !made.contains(path));
    Plan {
        write: names(&mut changes.write.keys()),
        merged: target.merged.clone(),
        remove: names(&mut changes.remove.iter()),
        modes: names(&mut changes.file_modes.iter().map(|(path, _)| path).chain(directory_modes)),
        make_directories: names(&mut changes.make_directories.iter()),
        remove_directories: names(&mut changes.remove_directories.iter()),
        keep: [target.keep.as_slice(), &actions.keep].concat(),
        possible_edits: actions.possible_edits.clone(),
        overlaps: target.overlaps.clone(),
        index_differs: !matches!(target.index, IndexTarget::Unchanged),
        head_target: target.head,
        in_progress: repository.operations_in_progress(),
        head,
    }
}

impl PreparedRestore {
    pub fn is_name_free(&self, reference: &str) -> Result<bool> {
        is_name_free(&self.scratch, reference)
    }

    /// Stores the present state as a restore point, so that the restore can be undone. Until this is dropped,
    /// no other process applies a diff or restores here.
    pub fn create_undo_point(&mut self, reference: &str) -> Result<RestorePoint, RestoreError> {
        let scratch = &self.scratch;
        self.writer = Some(TreeWriter::open(&scratch.git, &scratch.repository, reference)?.0);
        self.present.about_to_write = self.changes.write.keys().cloned().collect();
        let committed = CommittedTree::start(&self.scratch, &self.plan.head)?;
        Ok(record(&self.scratch, &mut self.present, &self.plan.head, committed, reference)?)
    }
}

#[derive(Debug, Default)]
pub(crate) struct FileActions {
    pub(crate) changes: TreeChanges,
    stamps: Stamps,
    keep: Vec<(String, KeepReason)>,
    possible_edits: Option<Vec<(String, PossibleEdit)>>,
}

impl FileActions {
    /// Lists files that could not be captured now and are not in the restore point: they stay.
    fn keep_uncaptured(&mut self, untouchable: &Untouchable) {
        let listed: BTreeSet<String> = self.keep.iter().map(|(name, _)| name.clone()).collect();
        let uncaptured = untouchable.left_out_now.difference(&untouchable.left_out_before);
        let uncaptured = uncaptured.filter(|name| !listed.contains(*name));
        self.keep.extend(uncaptured.map(|name| (name.clone(), KeepReason::NotStorable)));
    }
}

fn plan_files(top_level: &Path, target: &Target, untouchable: &Untouchable, now: &TreeFiles) -> FileActions {
    let mut actions = FileActions::default();
    let changes = &mut actions.changes;
    changes.unlocks_directories = true;
    let removed = now.keys().filter(|path| !target.files.contains_key(*path));
    for path in target.files.keys().chain(removed) {
        let (old, new) = (now.get(path), target.files.get(path));
        if old == new {
            let expected = target.survey.file_mode(path);
            if let Some(mode) =
                expected.filter(|mode| file_mode(top_level, path).is_some_and(|now| now != *mode))
            {
                changes.file_modes.push((path.clone(), mode));
            }
            continue;
        }
        if let Some(reason) = untouchable.reason(path, [old, new]) {
            actions.keep.push((display_path(path), reason));
            continue;
        }
        // What appears later where no file was is not to be replaced.
        let stamp = old.and_then(|_| Stamp::at(&on_disk(top_level, path)));
        actions.stamps.insert(path.clone(), stamp);
        match new {
            None => drop(changes.remove.insert(path.clone())),
            Some(version) => {
                let mode = target.survey.file_mode(path);
                changes.write.insert(path.clone(), (version.clone(), mode));
            }
        }
    }
    actions
}

/// Fails if an object that the restore needs is missing.
fn check_objects_exist(
    scratch: &Scratch,
    point: &RestorePoint,
    target: &Target,
    changes: &TreeChanges,
) -> Result<(), RestoreError> {
    let mut needed: BTreeSet<String> = changes.write.values().map(|((_, id), _)| id.clone()).collect();
    match &target.index {
        IndexTarget::Unchanged => {}
        IndexTarget::Saved(index) => needed.extend(index.own_objects()),
        IndexTarget::Edited(edits) => {
            needed.extend(edits.entries.iter().filter(|entry| !entry.is_submodule()).map(IndexEntry::id));
        }
    }
    let count = needed.len();
    if scratch.existing_objects(needed)?.len() != count {
        return Err(RestoreError::PointMissing { reference: point.reference.clone() });
    }
    Ok(())
}

/// Fails if something that must stay is in place of something to be written.
fn check_blocked_paths(top_level: &Path, changes: &TreeChanges) -> Result<(), RestoreError> {
    let removed: BTreeSet<&[u8]> = changes.remove.iter().map(Vec::as_slice).collect();
    let refuse = |path: &[u8], problem| Err(RestoreError::PathBlocked { path: display_path(path), problem });
    // Collected first, so that each directory is checked once.
    let mut folders: BTreeSet<&[u8]> = BTreeSet::new();
    for path in changes.write.keys() {
        let file = on_disk(top_level, path);
        if fs::symlink_metadata(&file).is_ok_and(|found| found.is_dir())
            && !contains_only(&file, path, &removed)
        {
            return refuse(path, "a directory with files that must stay");
        }
        folders.extend(ancestors(path));
    }
    for folder in folders {
        let found = fs::symlink_metadata(on_disk(top_level, folder));
        if found.is_ok_and(|found| !found.is_dir()) && !removed.contains(folder) {
            return refuse(folder, "a file in place of a directory");
        }
    }
    Ok(())
}

impl TreeChanges {
    /// Adds what a restore does with directories. Returns the paths of directories where a file must stay.
    pub(crate) fn add_directories(
        &mut self,
        top_level: &Path,
        saved: &Survey,
        present: &Survey,
    ) -> Vec<RepoPath> {
        let mut blocked: Vec<RepoPath> = Vec::new();
        for (path, directory) in &saved.directories {
            match fs::symlink_metadata(on_disk(top_level, path)) {
                Ok(current) if current.is_dir() => {
                    if current.permissions().mode() & 0o7777 != directory.mode {
                        self.directory_modes.insert(path.clone(), directory.mode);
                    }
                }
                Ok(_) if !self.remove.contains(path) => blocked.push(path.clone()),
                // Below a blocked path nothing can be created. Outer directories come first.
                _ if blocked.iter().any(|above| is_below(path, above)) => {}
                _ => {
                    self.make_directories.push(path.clone());
                    self.directory_modes.insert(path.clone(), directory.mode);
                }
            }
        }
        let removed: BTreeSet<&[u8]> = self.remove.iter().map(Vec::as_slice).collect();
        let is_removable = |path: &&RepoPath| {
            let is_replaced = self.write.contains_key(*path);
            !saved.directories.contains_key(*path)
                && (is_replaced || !saved.is_unrecorded(path))
                && contains_only(&on_disk(top_level, path), path, &removed)
        };
        self.remove_directories = present.directories.keys().rev().filter(is_removable).cloned().collect();
        blocked
    }
}

pub(crate) fn is_below(path: &[u8], above: &[u8]) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"))
}
