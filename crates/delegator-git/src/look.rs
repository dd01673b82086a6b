//! What bringing a restore point back would do: everything that can be known is found out here, before anything changes.
//!
//! Both sides are trees of bytes: the one that was kept, and one made of the present state. What differs is written or
//! removed; the present side has nothing in it that could not be brought back itself. Never touched are ignored files
//! (by the rules of now and by those of then), files that either side had to leave out, and other repositories.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::capture::{Captured, Limits, Purpose, capture};
use crate::error::{GitError, RestoreError};
use crate::listing::{GITLINK, RepoPath, changes, joined, on_disk, records, shown};
use crate::point::{RestorePoint, record};
use crate::repository::{Head, Repository, find};
use crate::run::Git;
use crate::scratch::{Objects, Scratch};

/// What would be done, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub write: Vec<String>,
    pub remove: Vec<String>,
    /// Differs, and is left as it is, with the reason.
    pub keep: Vec<(String, &'static str)>,
    /// The index differs and would be brought back.
    pub index_differs: bool,
    /// The index had conflicts then, and is left as it is.
    pub index_is_left: bool,
    /// HEAD or its branch is elsewhere.
    pub head_moved: bool,
    pub head: Head,
    /// What is under way in the repository, by the names of git's own files.
    pub under_way: Vec<&'static str>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.write.is_empty() && self.remove.is_empty() && !self.index_differs
    }
}

/// A restore that has been checked and not been done.
#[derive(Debug)]
pub struct Prospect {
    pub plan: Plan,
    pub(crate) point: RestorePoint,
    pub(crate) scratch: Scratch,
    pub(crate) captured: Captured,
    pub(crate) write: Vec<RepoPath>,
    pub(crate) remove: Vec<RepoPath>,
}

/// The index the kept work tree is in.
pub(crate) const TARGET: &str = "target";

/// Checks whether and how a restore point can be brought back. With `only_look` nothing is added to the repository.
pub fn look(
    git: &Git,
    point: &RestorePoint,
    place: &Path,
    only_look: bool,
) -> Result<Prospect, RestoreError> {
    let repository = same_repository(git, point)?;
    if repository.value(git, &point.reference)?.as_deref() != Some(point.commit.as_str()) {
        return Err(RestoreError::Gone { reference: point.reference.clone() });
    }
    let lock = repository.git_dir.join("index.lock");
    if fs::symlink_metadata(&lock).is_ok() {
        return Err(RestoreError::Locked { top_level: repository.top_level, lock });
    }
    let objects = if only_look { Objects::Passing } else { Objects::Kept };
    let scratch = Scratch::make(git, &repository, place, objects)?;
    let kept = scratch.run("none", ["ls-tree", "-r", "-z", "--name-only", &point.tree], b"")?;
    let kept: BTreeSet<RepoPath> = records(&kept).map(<[u8]>::to_vec).collect();
    let captured = capture(&scratch, Limits::default(), &kept, Purpose::Restore)?;
    fs::copy(scratch.path("index"), scratch.path(TARGET))
        .map_err(GitError::io("copy", scratch.path("index")))?;
    scratch.run(TARGET, ["read-tree", "--reset", &point.tree], b"")?;
    let sorted = sort(&scratch, point, &captured, &kept)?;
    in_the_way(&repository, &sorted)?;
    let head = repository.head(git)?;
    let names = |paths: &[RepoPath]| paths.iter().map(|path| shown(path)).collect();
    let plan = Plan {
        write: names(&sorted.write),
        remove: names(&sorted.remove),
        keep: sorted.keep,
        index_differs: point.index_tree.is_some() && point.index_tree != captured.index_tree,
        index_is_left: point.index_tree.is_none(),
        head_moved: head.commit != point.head || head.branch != point.branch,
        under_way: under_way(&repository),
        head,
    };
    let point = point.clone();
    Ok(Prospect { plan, point, scratch, captured, write: sorted.write, remove: sorted.remove })
}

impl Prospect {
    /// Keeps the present state, so that the restore can itself be undone.
    pub fn keep_undo(&mut self, reference: &str) -> Result<RestorePoint, GitError> {
        record(&self.scratch, &mut self.captured, self.plan.head.clone(), reference)
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
struct Sorted {
    write: Vec<RepoPath>,
    remove: Vec<RepoPath>,
    keep: Vec<(String, &'static str)>,
}

fn sort(
    scratch: &Scratch,
    point: &RestorePoint,
    captured: &Captured,
    kept: &BTreeSet<RepoPath>,
) -> Result<Sorted, GitError> {
    let args =
        ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", &captured.tree, &point.tree];
    let differing = changes(&scratch.run("none", args, b"")?, "diff-tree")?;
    let left_then: BTreeSet<&str> = point.left_out.iter().map(|one| one.path.as_str()).collect();
    let left_now: BTreeSet<&str> = captured.left_out.iter().map(|one| one.path.as_str()).collect();
    let removable = differing.iter().filter(|change| change.status == b'D');
    let ignored = ignored_then(scratch, kept, removable.map(|change| change.path.as_slice()))?;
    let mut sorted = Sorted { write: Vec::new(), remove: Vec::new(), keep: Vec::new() };
    for change in differing {
        let name = shown(&change.path);
        let reason = if change.old_mode == GITLINK || change.new_mode == GITLINK {
            Some("a submodule")
        } else if left_then.contains(name.as_str()) {
            Some("it was left out of the restore point")
        } else if left_now.contains(name.as_str()) {
            Some("its present content could not be kept")
        } else if captured.sparse.contains(&change.path) {
            Some("outside the sparse checkout")
        } else if ignored.contains(&change.path) {
            Some("it was ignored before the task")
        } else {
            None
        };
        match (reason, change.status) {
            (Some(reason), _) => sorted.keep.push((name, reason)),
            (None, b'D') => sorted.remove.push(change.path),
            (None, _) => sorted.write.push(change.path),
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

/// Which of the paths the ignore files of then would have hidden.
fn ignored_then<'a>(
    scratch: &Scratch,
    kept: &BTreeSet<RepoPath>,
    paths: impl Iterator<Item = &'a [u8]>,
) -> Result<BTreeSet<RepoPath>, GitError> {
    let paths: Vec<&[u8]> = paths.collect();
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let place = scratch.path("rules");
    fs::create_dir(&place).map_err(GitError::io("make", &place))?;
    let rules = kept.iter().filter(|path| *path == b".gitignore" || path.ends_with(b"/.gitignore"));
    let prefix = format!("--prefix={}/", place.display());
    let rules = joined(rules.map(Vec::as_slice));
    scratch.run(TARGET, ["checkout-index", "-z", "--force", &prefix, "--stdin"], &rules)?;
    scratch.ignored_in(TARGET, &place, &paths)
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
fn only_holds(place: &Path, path: &[u8], removed: &BTreeSet<&[u8]>) -> bool {
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

fn under_way(repository: &Repository) -> Vec<&'static str> {
    let signs =
        ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"];
    signs.into_iter().filter(|sign| repository.git_dir.join(sign).exists()).collect()
}
