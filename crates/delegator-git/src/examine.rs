//! Finds how a work tree differs from an index of ours, and which files git ignores.
//!
//! In a small work tree this process compares metadata itself, by git's rules, and asks git only which of the files outside
//! the index are ignored. Whatever these rules leave open is left to git, which reads the work tree itself.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::capture::{RAW_DIFF_ARGS, WORK_INDEX};
use crate::error::GitError;
use crate::ignored::{Ignored, is_in_tool_directory};
use crate::index_file::{CachedStat, Entry, IndexFile};
use crate::listing::{Change, RepoPath, on_disk, parse_raw_diff, records};
use crate::new_object::blob_id;
use crate::read_file::read_regular;
use crate::scan::{IndexPaths, Scan, ScannedFile, ScannedKind, content};
use crate::scratch::{MAX_EXCLUDE_BYTES, Scratch};

/// Limit for the content of files whose cached metadata git does not trust.
const MAX_HASHED_BYTES: u64 = 1 << 20;

/// How the work tree differs from an index.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    pub(crate) changed: Vec<Change>,
    /// In the index, but in a directory without search permission.
    pub(crate) unreachable: Vec<RepoPath>,
    /// Neither in the index nor ignored; the path of a repository ends in a slash.
    pub(crate) untracked: BTreeSet<RepoPath>,
}

impl Differences {
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.untracked.is_empty()
    }

    pub(crate) fn deleted(&self) -> impl Iterator<Item = &RepoPath> {
        self.changed.iter().filter(|change| change.is_deleted).map(|change| &change.path)
    }

    pub(crate) fn existing(&self) -> impl Iterator<Item = &RepoPath> {
        self.changed.iter().filter(|change| !change.is_deleted).map(|change| &change.path)
    }
}

/// What is in a work tree, compared with an index.
#[derive(Debug)]
pub(crate) struct Examination {
    pub(crate) differences: Differences,
    pub(crate) ignored: Ignored,
    /// Proves later that nothing changed; `None` if git had to read the work tree.
    pub(crate) snapshot: Option<Snapshot>,
}

/// A scan of a work tree, and what else decides which files git lists.
#[derive(Debug)]
pub(crate) struct Snapshot {
    scan: Scan,
    index: Vec<Entry>,
    /// The content of the user's own ignore files.
    user_excludes: Vec<Option<Vec<u8>>>,
}

impl Snapshot {
    /// Whether a comparison would find no change in the work tree.
    pub(crate) fn is_current(&self, scratch: &Scratch) -> bool {
        let index = IndexPaths(&self.index);
        Some(&self.user_excludes) == user_excludes(scratch).as_ref()
            && self.scan.is_current(&scratch.git, &scratch.repository.top_level, index)
    }
}

/// The content of the user's own ignore files, if they exist; `None` if one of them is large or no regular file.
fn user_excludes(scratch: &Scratch) -> Option<Vec<Option<Vec<u8>>>> {
    let content = |file: &PathBuf| match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(None),
        _ if file.as_os_str() == "/dev/null" => Some(None),
        _ => read_regular(file, MAX_EXCLUDE_BYTES, true).map(Some),
    };
    scratch.user_excludes.iter().map(content).collect()
}

/// Compares the work tree with our index, whose flags that hide files are cleared already. `index` has its entries; without
/// it, git examines everything.
pub(crate) fn examine(
    scratch: &Scratch,
    index: Option<&IndexFile>,
    lists_ignored: bool,
) -> Result<Examination, GitError> {
    let index = index.filter(|index| scratch.has_exact_metadata && index.is_ordinary());
    let (changed, listing, snapshot) = match index {
        Some(index) => examine_in_process(scratch, index),
        None => (None, None, None),
    };
    let (changed, (untracked, ignored)) = with_git(scratch, changed, listing, lists_ignored)?;
    let ignored = if lists_ignored { ignored } else { Ignored::default() };
    let (unreachable, changed): (Vec<Change>, Vec<Change>) = changed
        .into_iter()
        .partition(|change| change.is_deleted && is_permission_denied(scratch, &change.path));
    let unreachable = unreachable.into_iter().map(|change| change.path).collect();
    Ok(Examination { differences: Differences { changed, unreachable, untracked }, ignored, snapshot })
}

/// Changed entries, files outside the index, and a snapshot; each `None` if git must decide.
fn examine_in_process(
    scratch: &Scratch,
    index: &IndexFile,
) -> (Option<Vec<Change>>, Option<Listing>, Option<Snapshot>) {
    let user_excludes = user_excludes(scratch);
    let paths = IndexPaths(&index.entries);
    let Some(scan) = Scan::take(&scratch.git, &scratch.repository.top_level, paths) else {
        return (None, None, None);
    };
    let changed = changed_entries(scratch, index, &scan);
    let listing = list_extra(scratch, paths, &scan);
    let snapshot = user_excludes.filter(|_| listing.is_some());
    let snapshot =
        snapshot.map(|user_excludes| Snapshot { scan, index: index.entries.clone(), user_excludes });
    (changed, listing, snapshot)
}

/// Untracked files and ignored files.
type Listing = (BTreeSet<RepoPath>, Ignored);

/// Runs git for what is not known yet, at the same time.
fn with_git(
    scratch: &Scratch,
    changed: Option<Vec<Change>>,
    listing: Option<Listing>,
    lists_ignored: bool,
) -> Result<(Vec<Change>, Listing), GitError> {
    let is_listed = listing.is_some();
    let list_untracked =
        || scratch.run(WORK_INDEX, ["ls-files", "-z", "--others", "--exclude-standard"], b"");
    let (changed, untracked, ignored) = std::thread::scope(|scope| {
        let untracked = (!is_listed).then(|| scope.spawn(list_untracked));
        let ignored = (!is_listed && lists_ignored).then(|| scope.spawn(|| Ignored::list(scratch)));
        let changed = changed.map_or_else(|| changed_by_git(scratch), Ok);
        (changed, untracked.map(join_thread), ignored.map(join_thread))
    });
    let listing = match listing {
        Some(listing) => listing,
        None => {
            let untracked = untracked.transpose()?.unwrap_or_default();
            (records(&untracked).map(<[u8]>::to_vec).collect(), ignored.transpose()?.unwrap_or_default())
        }
    };
    Ok((changed?, listing))
}

/// Returns the thread's result or resumes its panic.
fn join_thread<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn changed_by_git(scratch: &Scratch) -> Result<Vec<Change>, GitError> {
    let mut changed = parse_raw_diff(&scratch.run(WORK_INDEX, RAW_DIFF_ARGS, b"")?)?;
    changed.retain(|change| !change.is_submodule);
    Ok(changed)
}

/// Whether permission to stat the path is denied. git reports such a file as deleted.
fn is_permission_denied(scratch: &Scratch, path: &RepoPath) -> bool {
    let found = fs::symlink_metadata(on_disk(&scratch.repository.top_level, path));
    found.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Asks git which of the files outside the index are ignored. `None` if git must list them, because a directory that
/// was not read is not ignored.
fn list_extra(scratch: &Scratch, index: IndexPaths<'_>, scan: &Scan) -> Option<Listing> {
    let extra: Vec<(&RepoPath, ScannedKind)> = scan.extra(index).collect();
    let names: Vec<&[u8]> = extra.iter().map(|(path, _)| path.as_slice()).collect();
    let ignored_names = match names.is_empty() {
        true => BTreeSet::new(),
        false => scratch.ignored_in("none", &scratch.repository.top_level, &names).ok()?,
    };
    let (mut untracked, mut ignored) = (BTreeSet::new(), Ignored::default());
    for (path, kind) in extra {
        match (ignored_names.contains(path), kind) {
            (false, ScannedKind::ToolDirectory) => return None,
            (true, ScannedKind::ToolDirectory) => {}
            (false, _) => drop(untracked.insert(path.clone())),
            (true, _) if is_in_tool_directory(path) => {}
            (true, _) => drop(ignored.files.insert(path.clone())),
        }
    }
    Some((untracked, ignored))
}

/// The entries that differ from the work tree by git's rules. `None` if only git can decide.
fn changed_entries(scratch: &Scratch, index: &IndexFile, scan: &Scan) -> Option<Vec<Change>> {
    let written = fs::metadata(scratch.path(WORK_INDEX)).ok()?.mtime();
    let mut changed = Vec::new();
    let mut bytes_left = MAX_HASHED_BYTES;
    let entries = index.entries.iter().zip(&index.stats).filter(|(entry, _)| !entry.is_submodule());
    for (entry, stat) in entries {
        let change = |is_deleted| Change { is_submodule: false, is_deleted, path: entry.path.clone() };
        let Some(found) = scan.files.get(&entry.path) else {
            changed.push(change(true));
            continue;
        };
        let is_equal = match compare_metadata(entry, stat, found) {
            Comparison::Differs => false,
            Comparison::Unknown => return None,
            // git does not trust an entry that is not older than the index.
            Comparison::Equal if i64::from(stat.modified.0) < written => true,
            Comparison::Equal => {
                bytes_left = bytes_left.checked_sub(found.stamp.size)?;
                let content = content(&scratch.repository.top_level, &entry.path, found)?;
                blob_id(&content, entry.binary_id().len()) == entry.binary_id()
            }
        };
        if !is_equal {
            changed.push(change(false));
        }
    }
    Some(changed)
}

enum Comparison {
    Equal,
    Differs,
    Unknown,
}

/// Compares like git with its default settings. git may be built to ignore nanoseconds, so a difference of only these is
/// unknown.
fn compare_metadata(entry: &Entry, cached: &CachedStat, found: &ScannedFile) -> Comparison {
    let stamp = &found.stamp;
    let is_same_kind = match found.kind {
        ScannedKind::File => entry.is_file() && entry.is_executable() == (stamp.mode & 0o100 != 0),
        ScannedKind::Symlink => entry.is_symlink(),
        _ => return Comparison::Unknown,
    };
    let (changed, modified) = (low_bits(stamp.changed), low_bits(stamp.modified));
    let is_same_file = is_same_kind
        && (changed.0, modified.0) == (cached.changed.0, cached.modified.0)
        && (stamp.inode as u32, stamp.owner) == (cached.inode, cached.owner)
        && stamp.size as u32 == cached.size;
    match is_same_file {
        false => Comparison::Differs,
        // git sets the size of an entry that it does not trust to zero, and compares other sizes by their low bits.
        true if stamp.size == 0 && blob_id(b"", entry.binary_id().len()) != entry.binary_id() => {
            Comparison::Unknown
        }
        true if stamp.size > u64::from(u32::MAX) => Comparison::Unknown,
        true if (changed.1, modified.1) == (cached.changed.1, cached.modified.1) => Comparison::Equal,
        true => Comparison::Unknown,
    }
}

fn low_bits((seconds, nanoseconds): (i64, i64)) -> (u32, u32) {
    (seconds as u32, nanoseconds as u32)
}
