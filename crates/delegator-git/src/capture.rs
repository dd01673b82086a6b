//! Captures the index and the work tree as git trees without changing either.
//!
//! The tree of the work tree starts as a copy of the index. Files that differ on disk and untracked files are added
//! byte for byte. git may convert a file when it is added (line endings, Git LFS); such a file is recognised because
//! its size differs from the size of its object, and its bytes on disk are added instead.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::add_to_index::Gatherer;
use crate::error::GitError;
use crate::ignored::Ignored;
use crate::listing::{Change, RepoPath, join_records, on_disk, parse_raw_diff, records, single_line};
use crate::scratch::Scratch;
use crate::stamp::Stamp;
use crate::tracked::{TrackedFiles, is_checked_out};

/// Limits for copying files that git does not track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub file_bytes: u64,
    pub total_bytes: u64,
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { file_bytes: 10 << 20, total_bytes: 200 << 20, time: Duration::from_secs(5) }
    }
}

/// A file that is not in a restore point. A restore never touches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub path: String,
    pub reason: LeftOutReason,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    TooLarge,
    /// The total size limit was reached by earlier files.
    TooMuch,
    TooLate,
    Unreadable,
    /// A repository, not a file.
    Repository,
    /// git ignores it, and it is beyond the limits of what is examined.
    Ignored,
    /// Its content before or after the change is not stored.
    NoContent,
}

/// Why a work tree is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For a restore point: every file byte for byte.
    Save,
    /// Like `Save`, but ignored files are captured only if they are in `needed`.
    Restore,
    /// For a later comparison: files that git considers unchanged are not read, and every file is subject to the size
    /// limits.
    Compare,
}

/// The result of a capture.
#[derive(Debug)]
pub(crate) struct Capture {
    /// The id of the tree of the work tree.
    pub(crate) tree: String,
    /// The id of the tree of the index; `None` if the index has conflicts, which a tree cannot represent.
    pub(crate) index_tree: Option<String>,
    pub(crate) modified: usize,
    pub(crate) untracked: usize,
    pub(crate) left_out: Vec<LeftOut>,
    /// Stamps of files whose content was not read.
    pub(crate) unread: BTreeMap<RepoPath, Stamp>,
    /// Whether the index has entries that a sparse checkout leaves off the disk.
    pub(crate) is_sparse: bool,
    /// Repositories inside the work tree, submodules included; each path ends in a slash.
    pub(crate) repositories: Vec<RepoPath>,
    /// Submodules that are not checked out.
    pub(crate) absent_submodules: Vec<RepoPath>,
    /// Ignored files and directories that were not examined.
    pub(crate) not_examined: Vec<LeftOut>,
}

/// Our copy of the index, in which the tree of the work tree is built.
pub(crate) const WORK_INDEX: &str = "index";
/// Compares an index with the work tree, ignoring submodules.
pub(crate) const RAW_DIFF_ARGS: [&str; 6] =
    ["diff-files", "--raw", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=all"];
/// How the work tree differs from an index.
#[derive(Debug)]
pub(crate) struct Differences {
    pub(crate) changed: Vec<Change>,
    /// In the index, but in a directory without search permission.
    pub(crate) unreachable: Vec<RepoPath>,
    /// Neither in the index nor ignored; the path of a repository ends in a slash.
    pub(crate) untracked: BTreeSet<RepoPath>,
}

/// Whether permission to stat the path is denied. git reports such a file as deleted.
fn is_permission_denied(scratch: &Scratch, path: &RepoPath) -> bool {
    let found = std::fs::symlink_metadata(on_disk(&scratch.repository.top_level, path));
    found.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

impl Differences {
    pub(crate) fn of(scratch: &Scratch) -> Result<Differences, GitError> {
        let list_untracked =
            || scratch.run(WORK_INDEX, ["ls-files", "-z", "--others", "--exclude-standard"], b"");
        let (raw, untracked) = std::thread::scope(|scope| {
            let untracked = scope.spawn(list_untracked);
            (scratch.run(WORK_INDEX, RAW_DIFF_ARGS, b""), join_thread(untracked))
        });
        let (mut changed, untracked) = (parse_raw_diff(&raw?)?, untracked?);
        changed.retain(|change| !change.is_submodule);
        let (unreachable, changed): (Vec<Change>, Vec<Change>) = changed
            .into_iter()
            .partition(|change| change.is_deleted && is_permission_denied(scratch, &change.path));
        let unreachable = unreachable.into_iter().map(|change| change.path).collect();
        Ok(Differences { changed, unreachable, untracked: records(&untracked).map(<[u8]>::to_vec).collect() })
    }

    pub(crate) fn deleted(&self) -> impl Iterator<Item = &RepoPath> {
        self.changed.iter().filter(|change| change.is_deleted).map(|change| &change.path)
    }

    pub(crate) fn existing(&self) -> impl Iterator<Item = &RepoPath> {
        self.changed.iter().filter(|change| !change.is_deleted).map(|change| &change.path)
    }
}

/// Returns the thread's result or resumes its panic.
fn join_thread<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Captures index and work tree. Files in `needed` are added whatever their size, ignored or not, if they are on disk.
pub(crate) fn capture(
    scratch: &Scratch,
    limits: Limits,
    needed: &BTreeSet<RepoPath>,
    purpose: Purpose,
) -> Result<Capture, GitError> {
    scratch.copy_index(WORK_INDEX)?;
    let tracked = TrackedFiles::read(scratch, WORK_INDEX)?;
    let index_tree = write_index_tree(scratch, WORK_INDEX)?;
    tracked.unhide(scratch, WORK_INDEX)?;
    // Both walk the work tree in a git process of their own.
    let (differences, ignored) = std::thread::scope(|scope| {
        // A restore only writes paths of the restore point, and `needed` already contains these.
        let is_listed = purpose != Purpose::Restore;
        let ignored = is_listed.then(|| scope.spawn(|| Ignored::list(scratch)));
        let differences = Differences::of(scratch);
        (differences, ignored.map_or_else(|| Ok(Ignored::default()), join_thread))
    });
    let (differences, ignored) = (differences?, ignored?);
    let converts = purpose != Purpose::Compare && (scratch.converts || has_attributes(scratch)?);
    let converted = if converts { tracked.converted(scratch, WORK_INDEX)? } else { Vec::new() };
    remove_from_index(scratch, differences.deleted())?;
    let mut gatherer = Gatherer::new(scratch, limits, needed);
    gather_changes(
        &mut gatherer,
        &Findings { tracked: &tracked, differences: &differences, ignored: &ignored, converted },
        needed,
        purpose,
    )?;
    let (checked_out, absent_submodules): (Vec<RepoPath>, Vec<RepoPath>) =
        tracked.submodules.into_iter().partition(|path| is_checked_out(scratch, path));
    let mut repositories: Vec<RepoPath> = checked_out.iter().map(with_trailing_slash).collect();
    repositories.extend(ignored.repositories);
    for path in &repositories {
        gatherer.leave_out_repository(path);
    }
    repositories.extend(differences.untracked.iter().filter(|path| path.ends_with(b"/")).cloned());
    let mut gathered = gatherer.finish()?;
    gathered.left_out.extend(ignored.not_examined.iter().cloned());
    let tree = match (&index_tree, gathered.count == 0 && differences.changed.is_empty()) {
        (Some(tree), true) => tree.clone(),
        _ => write_work_tree(scratch)?,
    };
    Ok(Capture {
        tree,
        index_tree,
        modified: differences.changed.len(),
        untracked: differences.untracked.len(),
        left_out: gathered.left_out,
        unread: gathered.unread,
        is_sparse: !tracked.sparse.is_empty(),
        repositories,
        absent_submodules,
        not_examined: ignored.not_examined,
    })
}

/// What capturing found in the work tree, apart from unchanged index entries.
struct Findings<'a> {
    tracked: &'a TrackedFiles,
    differences: &'a Differences,
    ignored: &'a Ignored,
    converted: Vec<RepoPath>,
}

/// Adds the content of every file that differs from the index.
fn gather_changes(
    gatherer: &mut Gatherer<'_>,
    findings: &Findings<'_>,
    needed: &BTreeSet<RepoPath>,
    purpose: Purpose,
) -> Result<(), GitError> {
    let Findings { tracked, differences, ignored, converted } = findings;
    let modified: BTreeSet<&RepoPath> = differences.changed.iter().map(|change| &change.path).collect();
    for path in differences.existing() {
        match purpose {
            Purpose::Compare => gatherer.add_if_small(path)?,
            Purpose::Save | Purpose::Restore => gatherer.add_tracked(path)?,
        }
    }
    for path in converted.iter().filter(|path| !modified.contains(*path)) {
        gatherer.add_converted(path)?;
    }
    let is_ignored = |path: &&RepoPath| !tracked.contains(path) && !differences.untracked.contains(*path);
    for path in differences.untracked.iter().chain(needed.iter().filter(is_ignored)) {
        gatherer.add_if_small(path)?;
    }
    for path in &differences.unreachable {
        gatherer.leave_out_unreadable(path);
    }
    for path in &ignored.files {
        match purpose {
            Purpose::Compare => gatherer.record_stamp(path),
            Purpose::Save | Purpose::Restore => gatherer.add_ignored(path)?,
        }
    }
    Ok(())
}

/// Appends a slash, as git lists untracked repositories.
pub(crate) fn with_trailing_slash(path: &RepoPath) -> RepoPath {
    [path.as_slice(), b"/"].concat()
}

pub(crate) fn remove_from_index<'a>(
    scratch: &Scratch,
    paths: impl Iterator<Item = &'a RepoPath>,
) -> Result<(), GitError> {
    let paths = join_records(paths.map(Vec::as_slice));
    if paths.is_empty() {
        return Ok(());
    }
    scratch.run(WORK_INDEX, ["update-index", "-z", "--force-remove", "--stdin"], &paths).map(drop)
}

/// Writes the captured files as a tree.
pub(crate) fn write_work_tree(scratch: &Scratch) -> Result<String, GitError> {
    Ok(single_line(&scratch.run(WORK_INDEX, ["write-tree", "--missing-ok"], b"")?))
}

/// Whether the repository has attribute files, which may convert files.
fn has_attributes(scratch: &Scratch) -> Result<bool, GitError> {
    let listed = scratch.run(WORK_INDEX, ["ls-files", "-z", "--", ":(top,glob)**/.gitattributes"], b"")?;
    Ok(!listed.is_empty())
}

/// Writes an index as a tree; `None` if it has conflicts.
pub(crate) fn write_index_tree(scratch: &Scratch, index: &str) -> Result<Option<String>, GitError> {
    match scratch.run(index, ["write-tree", "--missing-ok"], b"") {
        Ok(tree) => Ok(Some(single_line(&tree))),
        Err(error) => match scratch.run(index, ["ls-files", "-z", "--unmerged"], b"")?.is_empty() {
            true => Err(error),
            false => Ok(None),
        },
    }
}
