//! Plans a restore: determines everything it would change, before anything changes.
//!
//! The plan is the difference of two trees: the restore point's and one captured from the present state. Files that
//! differ are written or removed. Everything on the present side is in the undo point. Never touched: ignored files (by
//! the present rules and by those of the restore point), files that either side left out, and other repositories.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::capture::{Limits, Purpose, capture};
use crate::directory_modes::ancestors;
use crate::error::{GitError, RestoreError};
use crate::index_file::IndexFile;
use crate::listing::{GITLINK, RepoPath, display_path, on_disk};
use crate::repository::{Head, Repository, find_repository};
use crate::restore_point::RestorePoint;
use crate::run::Git;
use crate::saved_state::{DirectoryActions, SavedState};
use crate::scratch::Scratch;
use crate::state::{State, TreeFiles, directories_above, is_absent, tree_files};
use crate::store::Store;
use crate::write_restore_point::{existing_objects, record};

/// What a restore would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub write: Vec<String>,
    pub remove: Vec<String>,
    /// Files and directories of which only the permissions differ.
    pub modes: Vec<String>,
    pub make_directories: Vec<String>,
    /// Directories that did not exist and are empty once the files are removed.
    pub remove_directories: Vec<String>,
    /// Differs but is left unchanged, with the reason.
    pub keep: Vec<(String, &'static str)>,
    /// The index differs and would be restored.
    pub index_differs: bool,
    /// HEAD or its branch points elsewhere.
    pub head_moved: bool,
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

/// A restore that has been checked but not applied.
#[derive(Debug)]
pub struct PreparedRestore {
    pub plan: Plan,
    pub(crate) point: RestorePoint,
    pub(crate) scratch: Scratch,
    pub(crate) saved: SavedState,
    pub(crate) present: State,
    pub(crate) actions: FileActions,
    pub(crate) directories: DirectoryActions,
}

/// More than for creating a restore point: a restore should be complete.
const SURVEY_TIME: Duration = Duration::from_secs(60);
/// The index with the files to write, as they were.
pub(crate) const TARGET_INDEX: &str = "target";

/// Checks whether and how a restore point can be restored. Adds nothing to the repository.
pub fn prepare_restore(
    git: &Git,
    point: &RestorePoint,
    temp_dir: &Path,
) -> Result<PreparedRestore, RestoreError> {
    let repository = verify_repository(git, point)?;
    if !point.is_stored() {
        return Err(RestoreError::PointMissing { reference: point.reference.clone() });
    }
    let lock = repository.git_dir.join("index.lock");
    if fs::symlink_metadata(&lock).is_ok() {
        return Err(RestoreError::IndexLocked { top_level: repository.top_level, lock });
    }
    let scratch = Scratch::create(git, &repository, temp_dir)?.with_store(Store::at(&point.store));
    let saved = SavedState::read(&scratch, point)?;
    let mut before = tree_files(&scratch, &point.tree)?;
    before.retain(|path, _| !is_absent(&saved.absent, path));
    let (present, now) = capture_present(&scratch, &before, &saved)?;
    let actions = plan_files(&scratch, (point, &saved), &present, (&before, &now))?;
    check_blocked_paths(&repository, &actions)?;
    fill_index(
        &scratch,
        TARGET_INDEX,
        before.iter().filter(|(path, _)| actions.write.binary_search(path).is_ok()),
    )?;
    check_objects_exist(&scratch, point, (&before, &saved), &actions)?;
    let directories =
        DirectoryActions::compare(&repository.top_level, &saved.survey, &present.survey, &actions);
    let plan = plan(point, (&saved, &present), &actions, (&directories, &repository, repository.head(git)?));
    Ok(PreparedRestore { plan, point: point.clone(), scratch, saved, present, actions, directories })
}

/// Captures the present state; also returns the files of its tree that are on disk.
fn capture_present(
    scratch: &Scratch,
    before: &TreeFiles,
    saved: &SavedState,
) -> Result<(State, TreeFiles), GitError> {
    let mut needed: BTreeSet<RepoPath> = before.keys().cloned().collect();
    needed.extend(saved.written.iter().cloned());
    let index = IndexFile::read(scratch)?;
    let captured = capture(scratch, Limits::default(), &needed, Purpose::Restore)?;
    let mut now = tree_files(scratch, &captured.tree)?;
    let known = directories_above(&now);
    let present = State::of(scratch, captured, index, &known, SURVEY_TIME);
    now.retain(|path, _| !is_absent(&present.absent, path));
    Ok((present, now))
}

fn plan(
    point: &RestorePoint,
    (saved, present): (&SavedState, &State),
    actions: &FileActions,
    (directories, repository, head): (&DirectoryActions, &Repository, Head),
) -> Plan {
    let names = |paths: &[RepoPath]| paths.iter().map(|path| display_path(path)).collect();
    let mut keep = actions.keep.clone();
    keep.extend(
        directories.blocked.iter().map(|path| (display_path(path), "a file in place of a directory")),
    );
    Plan {
        write: names(&actions.write),
        remove: names(&actions.remove),
        modes: actions
            .modes
            .iter()
            .map(|(path, _)| path)
            .chain(&directories.modes)
            .map(|path| display_path(path))
            .collect(),
        make_directories: names(&directories.make),
        remove_directories: names(&directories.remove),
        keep,
        index_differs: saved.index_differs(point, &present.index),
        head_moved: head.commit != point.head || head.branch != point.branch,
        in_progress: operations_in_progress(repository),
        head,
    }
}

impl PreparedRestore {
    pub fn is_name_free(&self, reference: &str) -> Result<bool, GitError> {
        let scratch = &self.scratch;
        let is_stored = scratch.store().read(reference).is_some();
        Ok(!is_stored && scratch.repository.resolve_ref(&scratch.git, reference)?.is_none())
    }

    /// Stores the present state as a restore point, so that the restore can be undone.
    pub fn create_undo_point(&mut self, reference: &str) -> Result<RestorePoint, GitError> {
        self.present.about_to_write.clone_from(&self.actions.write);
        record(&self.scratch, &mut self.present, self.plan.head.clone(), reference)
    }
}

fn verify_repository(git: &Git, point: &RestorePoint) -> Result<Repository, RestoreError> {
    let mismatch =
        |problem| RestoreError::DifferentRepository { top_level: point.top_level.clone(), problem };
    if !point.top_level.is_dir() {
        return Err(mismatch("it does not exist"));
    }
    let repository =
        find_repository(git, &point.top_level)?.ok_or_else(|| mismatch("it is not a git work tree"))?;
    if repository.top_level != point.top_level || repository.common_dir != point.repository {
        return Err(mismatch("it belongs to another repository"));
    }
    Ok(repository)
}

/// What to do with each path that differs.
#[derive(Debug, Default)]
pub(crate) struct FileActions {
    pub(crate) write: Vec<RepoPath>,
    pub(crate) remove: Vec<RepoPath>,
    /// Files of which only the permissions change.
    pub(crate) modes: Vec<(RepoPath, u32)>,
    pub(crate) keep: Vec<(String, &'static str)>,
}

fn plan_files(
    scratch: &Scratch,
    (point, saved): (&RestorePoint, &SavedState),
    present: &State,
    (before, now): (&TreeFiles, &TreeFiles),
) -> Result<FileActions, GitError> {
    let captured = &present.captured;
    let left_out_before: BTreeSet<&str> = point.left_out.iter().map(|entry| entry.path.as_str()).collect();
    let left_out_now: BTreeSet<&str> = captured.left_out.iter().map(|entry| entry.path.as_str()).collect();
    let removable = now.keys().filter(|path| !before.contains_key(*path));
    let ignored = ignored_before(scratch, before, removable.map(Vec::as_slice))?;
    let top = &scratch.repository.top_level;
    let mut actions = FileActions::default();
    let added = now.keys().filter(|path| !before.contains_key(*path));
    for path in before.keys().chain(added) {
        let (old, new) = (now.get(path), before.get(path));
        if old == new {
            let expected = saved.survey.file_mode(path);
            if let Some(mode) = expected.filter(|mode| file_mode(top, path).is_some_and(|now| now != *mode)) {
                actions.modes.push((path.clone(), mode));
            }
            continue;
        }
        let name = display_path(path);
        let is_submodule = old.into_iter().chain(new).any(|(mode, _)| mode == GITLINK);
        let reason = if is_submodule {
            Some("a submodule")
        } else if left_out_before.contains(name.as_str()) {
            Some("it was left out of the restore point")
        } else if left_out_now.contains(name.as_str()) {
            Some("its present content could not be stored")
        } else if ignored.contains(path) && !saved.written.contains(path) {
            Some("it was ignored before the task")
        } else {
            None
        };
        match (reason, new) {
            (Some(reason), _) => actions.keep.push((name, reason)),
            (None, None) => actions.remove.push(path.clone()),
            (None, Some(_)) => actions.write.push(path.clone()),
        }
    }
    // Files that could not be captured now and are not in the restore point stay.
    let uncaptured = captured.left_out.iter().filter(|entry| !left_out_before.contains(entry.path.as_str()));
    let uncaptured = uncaptured.filter(|entry| !actions.keep.iter().any(|(name, _)| *name == entry.path));
    let uncaptured: Vec<_> =
        uncaptured.map(|entry| (entry.path.clone(), "its present content could not be stored")).collect();
    actions.keep.extend(uncaptured);
    Ok(actions)
}

/// The permission bits of a regular file.
pub(crate) fn file_mode(top_level: &Path, path: &[u8]) -> Option<u32> {
    let found = fs::symlink_metadata(on_disk(top_level, path)).ok()?;
    found.is_file().then(|| found.permissions().mode() & 0o7777)
}

/// Fails if an object that the restore needs is missing.
fn check_objects_exist(
    scratch: &Scratch,
    point: &RestorePoint,
    (before, saved): (&TreeFiles, &SavedState),
    actions: &FileActions,
) -> Result<(), RestoreError> {
    let files = actions.write.iter().filter_map(|path| before.get(path)).map(|(_, id)| id.clone());
    let needed: BTreeSet<String> = files.chain(saved.index.own_objects()).collect();
    let count = needed.len();
    match existing_objects(scratch, needed)?.len() == count {
        true => Ok(()),
        false => Err(RestoreError::PointMissing { reference: point.reference.clone() }),
    }
}

/// Returns those of the paths that the ignore files of the restore point match.
fn ignored_before<'a>(
    scratch: &Scratch,
    before: &TreeFiles,
    paths: impl Iterator<Item = &'a [u8]>,
) -> Result<BTreeSet<RepoPath>, GitError> {
    let paths: Vec<&[u8]> = paths.collect();
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let rules_dir = scratch.path("rules");
    fs::create_dir(&rules_dir).map_err(GitError::io("create", &rules_dir))?;
    let rules = before.iter().filter(|(path, _)| *path == b".gitignore" || path.ends_with(b"/.gitignore"));
    let index = "rules-index";
    fill_index(scratch, index, rules)?;
    let prefix = format!("--prefix={}/", rules_dir.display());
    scratch.run(index, ["checkout-index", "--all", "--force", &prefix], b"")?;
    scratch.ignored_in(index, &rules_dir, &paths)
}

/// Writes an index with exactly these files.
fn fill_index<'a>(
    scratch: &Scratch,
    index: &str,
    files: impl Iterator<Item = (&'a RepoPath, &'a (String, String))>,
) -> Result<(), GitError> {
    let mut entries = Vec::new();
    for (path, (mode, id)) in files {
        entries.extend_from_slice(format!("{mode} {id}\t").as_bytes());
        entries.extend_from_slice(path);
        entries.push(0);
    }
    scratch.run(index, ["read-tree", "--empty"], b"")?;
    scratch.run(index, ["update-index", "-z", "--index-info"], &entries).map(drop)
}

/// Fails if something that must stay is in place of something to be written.
fn check_blocked_paths(repository: &Repository, actions: &FileActions) -> Result<(), RestoreError> {
    let removed: BTreeSet<&[u8]> = actions.remove.iter().map(Vec::as_slice).collect();
    let refuse = |path: &[u8], problem| Err(RestoreError::PathBlocked { path: display_path(path), problem });
    // Collected first, so that each directory is checked once.
    let mut folders: BTreeSet<&[u8]> = BTreeSet::new();
    for path in &actions.write {
        let file = on_disk(&repository.top_level, path);
        if fs::symlink_metadata(&file).is_ok_and(|found| found.is_dir())
            && !contains_only(&file, path, &removed)
        {
            return refuse(path, "a directory with files that must stay");
        }
        folders.extend(ancestors(path));
    }
    for folder in folders {
        let found = fs::symlink_metadata(on_disk(&repository.top_level, folder));
        if found.is_ok_and(|found| !found.is_dir()) && !removed.contains(folder) {
            return refuse(folder, "a file in place of a directory");
        }
    }
    Ok(())
}

/// Whether everything in a directory is going to be removed.
pub(crate) fn contains_only(dir: &Path, path: &[u8], removed: &BTreeSet<&[u8]>) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(mut entries) = fs::read_dir(dir) else { return false };
    entries.all(|entry| {
        let Ok(entry) = entry else { return false };
        let inner = [path, b"/", entry.file_name().as_bytes()].concat();
        match entry.file_type().is_ok_and(|found| found.is_dir()) {
            true => contains_only(&entry.path(), &inner, removed),
            false => removed.contains(inner.as_slice()),
        }
    })
}

pub(crate) fn operations_in_progress(repository: &Repository) -> Vec<&'static str> {
    let marker_files =
        ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"];
    marker_files.into_iter().filter(|marker| repository.git_dir.join(marker).exists()).collect()
}
