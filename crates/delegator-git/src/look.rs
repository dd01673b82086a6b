//! What bringing a restore point back would do: everything that can be known is found out here, before anything changes.
//!
//! Both sides are trees of bytes: the one that was kept, and one made of the present state. What differs is written or
//! removed; the present side has nothing in it that could not be brought back itself. Never touched are ignored files
//! (by the rules of now and by those of then), files that either side had to leave out, and other repositories.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::capture::{Limits, Purpose, capture};
use crate::error::{GitError, RestoreError};
use crate::index_file::IndexFile;
use crate::kept::{Directories, KeptState};
use crate::listing::{GITLINK, RepoPath, on_disk, shown};
use crate::point::RestorePoint;
use crate::record::{existing, record};
use crate::repository::{Head, Repository, find};
use crate::run::Git;
use crate::scratch::Scratch;
use crate::state::{State, TreeFiles, directories_above, is_absent, tree_files};
use crate::store::Store;

/// What would be done, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub write: Vec<String>,
    pub remove: Vec<String>,
    /// Files and directories of which only the permissions differ.
    pub modes: Vec<String>,
    pub make_directories: Vec<String>,
    /// Directories that were not there and are empty once the files are removed.
    pub remove_directories: Vec<String>,
    /// Differs, and is left as it is, with the reason.
    pub keep: Vec<(String, &'static str)>,
    /// The index differs and would be brought back.
    pub index_differs: bool,
    /// The restore point, made by version 3.6 or earlier, has no index: it had conflicts. It is left as it is.
    pub index_is_left: bool,
    /// HEAD or its branch is elsewhere.
    pub head_moved: bool,
    pub head: Head,
    /// What is under way in the repository, by the names of git's own files.
    pub under_way: Vec<&'static str>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        let paths =
            [&self.write, &self.remove, &self.modes, &self.make_directories, &self.remove_directories];
        paths.iter().all(|list| list.is_empty()) && !self.index_differs
    }
}

/// A restore that has been checked and not been done.
#[derive(Debug)]
pub struct Prospect {
    pub plan: Plan,
    pub(crate) point: RestorePoint,
    pub(crate) scratch: Scratch,
    /// `None` for a restore point that version 3.6 or earlier made.
    pub(crate) kept: Option<KeptState>,
    pub(crate) present: State,
    pub(crate) sorted: Sorted,
    pub(crate) directories: Directories,
}

/// A restore is worth more time than a restore point.
const MAY_SURVEY: Duration = Duration::from_secs(60);
/// The index with the files to write, as they were.
pub(crate) const TARGET: &str = "target";

/// Checks whether and how a restore point can be brought back. Adds nothing to the repository.
pub fn look(git: &Git, point: &RestorePoint, place: &Path) -> Result<Prospect, RestoreError> {
    let repository = same_repository(git, point)?;
    let store = point.store.as_deref().map(Store::at);
    let commit = match &store {
        Some(store) => store.read(&point.reference),
        None => repository.value(git, &point.reference)?,
    };
    if commit.as_deref() != Some(point.commit.as_str()) {
        return Err(RestoreError::Gone { reference: point.reference.clone() });
    }
    let lock = repository.git_dir.join("index.lock");
    if fs::symlink_metadata(&lock).is_ok() {
        return Err(RestoreError::Locked { top_level: repository.top_level, lock });
    }
    let mut scratch = Scratch::make(git, &repository, place)?;
    if let Some(store) = store {
        scratch = scratch.with_store(store);
    }
    let kept = KeptState::read(&scratch, point)?;
    let mut before = tree_files(&scratch, &point.tree)?;
    if let Some(kept) = &kept {
        before.retain(|path, _| !is_absent(&kept.absent, path));
    }
    let (present, now) = present(&scratch, &before, kept.as_ref())?;
    let sorted = sort(&scratch, (point, kept.as_ref()), &present, (&before, &now))?;
    in_the_way(&repository, &sorted)?;
    fill_index(&scratch, TARGET, before.iter().filter(|(path, _)| sorted.write.binary_search(path).is_ok()))?;
    complete(&scratch, point, (&before, kept.as_ref()), &sorted)?;
    let directories = Directories::compare(&repository.top_level, kept.as_ref(), &present.survey, &sorted);
    let plan =
        plan(point, (kept.as_ref(), &present), &sorted, (&directories, &repository, repository.head(git)?));
    Ok(Prospect { plan, point: point.clone(), scratch, kept, present, sorted, directories })
}

/// The state of now, and the files of its tree that are on disk.
fn present(
    scratch: &Scratch,
    before: &TreeFiles,
    kept: Option<&KeptState>,
) -> Result<(State, TreeFiles), GitError> {
    let mut needed: BTreeSet<RepoPath> = before.keys().cloned().collect();
    needed.extend(kept.into_iter().flat_map(|kept| kept.written.iter().cloned()));
    let index = IndexFile::read(scratch)?;
    let captured = capture(scratch, Limits::default(), &needed, Purpose::Restore)?;
    let mut now = tree_files(scratch, &captured.tree)?;
    let known = directories_above(&now);
    let present = State::of(scratch, captured, index, &known, MAY_SURVEY);
    now.retain(|path, _| !is_absent(&present.absent, path));
    Ok((present, now))
}

fn plan(
    point: &RestorePoint,
    (kept, present): (Option<&KeptState>, &State),
    sorted: &Sorted,
    (directories, repository, head): (&Directories, &Repository, Head),
) -> Plan {
    let names = |paths: &[RepoPath]| paths.iter().map(|path| shown(path)).collect();
    let mut keep = sorted.keep.clone();
    keep.extend(directories.blocked.iter().map(|path| (shown(path), "a file where a directory was")));
    Plan {
        write: names(&sorted.write),
        remove: names(&sorted.remove),
        modes: sorted
            .modes
            .iter()
            .map(|(path, _)| path)
            .chain(&directories.modes)
            .map(|path| shown(path))
            .collect(),
        make_directories: names(&directories.make),
        remove_directories: names(&directories.remove),
        keep,
        index_differs: match kept {
            Some(kept) => kept.index_differs(&present.index),
            None => point.index_tree.is_some() && point.index_tree != present.captured.index_tree,
        },
        index_is_left: kept.is_none() && point.index_tree.is_none(),
        head_moved: head.commit != point.head || head.branch != point.branch,
        under_way: under_way(repository),
        head,
    }
}

impl Prospect {
    /// Whether a name for an undo point is not taken.
    pub fn is_free(&self, reference: &str) -> Result<bool, GitError> {
        let scratch = &self.scratch;
        let is_stored = scratch.store().read(reference).is_some();
        Ok(!is_stored && scratch.repository.value(&scratch.git, reference)?.is_none())
    }

    /// Keeps the present state, so that the restore can itself be undone.
    pub fn keep_undo(&mut self, reference: &str) -> Result<RestorePoint, GitError> {
        self.present.about_to_write.clone_from(&self.sorted.write);
        record(&self.scratch, &mut self.present, self.plan.head.clone(), reference)
    }
}

fn same_repository(git: &Git, point: &RestorePoint) -> Result<Repository, RestoreError> {
    let other = |problem| RestoreError::OtherRepository { top_level: point.top_level.clone(), problem };
    if !point.top_level.is_dir() {
        return Err(other("it is not there"));
    }
    let repository = find(git, &point.top_level)?.ok_or_else(|| other("it is no git work tree"))?;
    if repository.top_level != point.top_level || repository.common_dir != point.repository {
        return Err(other("it belongs to another repository"));
    }
    Ok(repository)
}

/// What is to be done with each path that differs.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    pub(crate) write: Vec<RepoPath>,
    pub(crate) remove: Vec<RepoPath>,
    /// Files that only get other permissions.
    pub(crate) modes: Vec<(RepoPath, u32)>,
    pub(crate) keep: Vec<(String, &'static str)>,
}

fn sort(
    scratch: &Scratch,
    (point, kept): (&RestorePoint, Option<&KeptState>),
    present: &State,
    (before, now): (&TreeFiles, &TreeFiles),
) -> Result<Sorted, GitError> {
    let captured = &present.captured;
    let left_then: BTreeSet<&str> = point.left_out.iter().map(|one| one.path.as_str()).collect();
    let left_now: BTreeSet<&str> = captured.left_out.iter().map(|one| one.path.as_str()).collect();
    let removable = now.keys().filter(|path| !before.contains_key(*path));
    let ignored = ignored_then(scratch, before, removable.map(Vec::as_slice))?;
    let top = &scratch.repository.top_level;
    let mut sorted = Sorted::default();
    let added = now.keys().filter(|path| !before.contains_key(*path));
    for path in before.keys().chain(added) {
        let (old, new) = (now.get(path), before.get(path));
        if old == new {
            let expected = kept.and_then(|kept| kept.survey.file_mode(path));
            if let Some(mode) = expected.filter(|mode| file_mode(top, path).is_some_and(|now| now != *mode)) {
                sorted.modes.push((path.clone(), mode));
            }
            continue;
        }
        let name = shown(path);
        let is_submodule = old.into_iter().chain(new).any(|(mode, _)| mode == GITLINK);
        let reason = if is_submodule {
            Some("a submodule")
        } else if left_then.contains(name.as_str()) {
            Some("it was left out of the restore point")
        } else if left_now.contains(name.as_str()) {
            Some("its present content could not be kept")
        } else if kept.is_none() && captured.sparse.contains(path) {
            Some("outside the sparse checkout")
        } else if ignored.contains(path) && !kept.is_some_and(|kept| kept.written.contains(path)) {
            Some("it was ignored before the task")
        } else {
            None
        };
        match (reason, new) {
            (Some(reason), _) => sorted.keep.push((name, reason)),
            (None, None) => sorted.remove.push(path.clone()),
            (None, Some(_)) => sorted.write.push(path.clone()),
        }
    }
    // What the present side could not take up and the kept one does not have stays where it is.
    let unknown = captured.left_out.iter().filter(|one| !left_then.contains(one.path.as_str()));
    let unknown = unknown.filter(|one| !sorted.keep.iter().any(|(name, _)| *name == one.path));
    let unknown: Vec<_> =
        unknown.map(|one| (one.path.clone(), "its present content could not be kept")).collect();
    sorted.keep.extend(unknown);
    Ok(sorted)
}

/// The permission bits of a plain file.
pub(crate) fn file_mode(top_level: &Path, path: &[u8]) -> Option<u32> {
    let found = fs::symlink_metadata(on_disk(top_level, path)).ok()?;
    found.is_file().then(|| found.permissions().mode() & 0o7777)
}

/// Refuses if an object the restore needs is gone.
fn complete(
    scratch: &Scratch,
    point: &RestorePoint,
    (before, kept): (&TreeFiles, Option<&KeptState>),
    sorted: &Sorted,
) -> Result<(), RestoreError> {
    let files = sorted.write.iter().filter_map(|path| before.get(path)).map(|(_, id)| id.clone());
    let needed: BTreeSet<String> = files.chain(kept.into_iter().flat_map(KeptState::own_objects)).collect();
    let count = needed.len();
    match existing(scratch, needed)?.len() == count {
        true => Ok(()),
        false => Err(RestoreError::Gone { reference: point.reference.clone() }),
    }
}

/// Which of the paths the ignore files of then would have hidden.
fn ignored_then<'a>(
    scratch: &Scratch,
    kept: &TreeFiles,
    paths: impl Iterator<Item = &'a [u8]>,
) -> Result<BTreeSet<RepoPath>, GitError> {
    let paths: Vec<&[u8]> = paths.collect();
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let place = scratch.path("rules");
    fs::create_dir(&place).map_err(GitError::io("make", &place))?;
    let rules = kept.iter().filter(|(path, _)| *path == b".gitignore" || path.ends_with(b"/.gitignore"));
    let index = "rules-index";
    fill_index(scratch, index, rules)?;
    let prefix = format!("--prefix={}/", place.display());
    scratch.run(index, ["checkout-index", "--all", "--force", &prefix], b"")?;
    scratch.ignored_in(index, &place, &paths)
}

/// Makes an index with these files and nothing else.
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

/// Refuses where something that must stay stands in the place of something that is to be written.
fn in_the_way(repository: &Repository, sorted: &Sorted) -> Result<(), RestoreError> {
    let removed: BTreeSet<&[u8]> = sorted.remove.iter().map(Vec::as_slice).collect();
    let refuse = |path: &[u8], problem| Err(RestoreError::InTheWay { path: shown(path), problem });
    // Each folder is looked at once.
    let mut folders: BTreeMap<&[u8], ()> = BTreeMap::new();
    for path in &sorted.write {
        let place = on_disk(&repository.top_level, path);
        if fs::symlink_metadata(&place).is_ok_and(|found| found.is_dir())
            && !only_holds(&place, path, &removed)
        {
            return refuse(path, "a folder with files that must stay");
        }
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            folders.insert(&path[..at], ());
        }
    }
    for folder in folders.into_keys() {
        let found = fs::symlink_metadata(on_disk(&repository.top_level, folder));
        if found.is_ok_and(|found| !found.is_dir()) && !removed.contains(folder) {
            return refuse(folder, "a file where a folder was");
        }
    }
    Ok(())
}

/// Whether everything in a folder is going to be removed.
pub(crate) fn only_holds(place: &Path, path: &[u8], removed: &BTreeSet<&[u8]>) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(entries) = fs::read_dir(place) else { return false };
    for entry in entries {
        let Ok(entry) = entry else { return false };
        let inner = [path, b"/", entry.file_name().as_bytes()].concat();
        let is_folder = entry.file_type().is_ok_and(|found| found.is_dir());
        let goes = if is_folder {
            only_holds(&entry.path(), &inner, removed)
        } else {
            removed.contains(inner.as_slice())
        };
        if !goes {
            return false;
        }
    }
    true
}

pub(crate) fn under_way(repository: &Repository) -> Vec<&'static str> {
    let signs =
        ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"];
    signs.into_iter().filter(|sign| repository.git_dir.join(sign).exists()).collect()
}
