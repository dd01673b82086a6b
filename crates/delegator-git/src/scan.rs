//! Names and metadata of the files of a small work tree, read by this process.
//!
//! Two equal scans mean that no file changed in between. Metadata alone cannot prove that for a file that changed a moment
//! before the first scan, because another change in the same clock tick may leave no trace; so the content of recently
//! changed files is hashed. A tree that is large, or has something in it that needs git's own rules (a nested
//! repository, a file in place of a directory), has no scan.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::ignored::is_tool_directory;
use crate::index_file::Entry;
use crate::listing::{RepoPath, on_disk};
use crate::read_file::read_regular;
use crate::run::Git;

/// A larger tree is left to git, which reads it with several threads.
const MAX_ENTRIES: usize = 10_000;
/// Limit for files that are not in the index. Below it, no limit of ignored files is ever reached.
pub(crate) const MAX_EXTRA: usize = 1_500;
/// The coarsest clock of a common file system has a resolution of two seconds.
const RECENT_SECONDS: i64 = 3;
/// Limit for the content of recently changed files.
const MAX_HASHED_BYTES: u64 = 1 << 20;

/// The index entries that decide which directories a scan reads, sorted by path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexPaths<'a>(pub(crate) &'a [Entry]);

impl<'a> IndexPaths<'a> {
    fn entry(self, path: &[u8]) -> Option<&'a Entry> {
        let found = self.0.binary_search_by(|entry| entry.path.as_slice().cmp(path)).ok()?;
        self.0.get(found)
    }

    pub(crate) fn contains(self, path: &[u8]) -> bool {
        self.entry(path).is_some()
    }

    /// Whether the index has files below this directory.
    fn has_below(self, directory: &[u8]) -> bool {
        let prefix = [directory, b"/"].concat();
        let first = self.0.partition_point(|entry| entry.path < prefix);
        self.0.get(first).is_some_and(|entry| entry.path.starts_with(&prefix))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScannedKind {
    File,
    Symlink,
    Directory,
    /// A directory that only tools fill, without files of the index. It is not read.
    ToolDirectory,
    /// Not read; true if it is checked out.
    Submodule(bool),
    /// A pipe, a socket or a device.
    Special,
}

/// All metadata that a change of a file leaves behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FullStamp {
    device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    /// Seconds and nanoseconds.
    pub(crate) modified: (i64, i64),
    pub(crate) changed: (i64, i64),
}

impl FullStamp {
    fn of(found: &Metadata) -> FullStamp {
        FullStamp {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            mode: found.mode(),
            owner: (found.uid(), found.gid()),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Of a directory: its names are compared, so its times are not.
    fn of_directory(found: &Metadata) -> FullStamp {
        FullStamp { device: found.dev(), inode: found.ino(), mode: found.mode(), ..FullStamp::default() }
    }

    fn is_recent(&self, now: i64) -> bool {
        self.modified.0.max(self.changed.0) >= now - RECENT_SECONDS
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScannedFile {
    pub(crate) kind: ScannedKind,
    pub(crate) stamp: FullStamp,
    /// Hash of the content, if the file changed recently.
    digest: Option<[u8; 32]>,
}

/// The files and directories of a work tree.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) files: BTreeMap<RepoPath, ScannedFile>,
    /// Whether a later scan with the same result proves that nothing changed.
    is_conclusive: bool,
}

impl Scan {
    /// Reads the work tree. `None` if git must read it.
    pub(crate) fn take(git: &Git, top_level: &Path, index: IndexPaths<'_>) -> Option<Scan> {
        let began = now();
        let mut scan = Scan { files: read_files(git, top_level, index)?, is_conclusive: true };
        scan.hash_recent(top_level, began);
        Some(scan)
    }

    /// Whether the work tree is still as this scan found it. `index` has the same entries as for the scan.
    pub(crate) fn is_current(&self, git: &Git, top_level: &Path, index: IndexPaths<'_>) -> bool {
        let Some(now) = self.is_conclusive.then(|| read_files(git, top_level, index)).flatten() else {
            return false;
        };
        let is_same =
            |((path, before), (path_now, now)): ((&RepoPath, &ScannedFile), (&RepoPath, &ScannedFile))| {
                (path, before.kind, before.stamp) == (path_now, now.kind, now.stamp)
            };
        let is_same_content = |(path, before): (&RepoPath, &ScannedFile)| match before.digest {
            Some(digest) => content_digest(top_level, path, before) == Some(digest),
            None => true,
        };
        self.files.len() == now.len()
            && self.files.iter().zip(&now).all(is_same)
            && self.files.iter().all(is_same_content)
    }

    /// Hashes the files that changed shortly before `began`.
    fn hash_recent(&mut self, top_level: &Path, began: i64) {
        let mut total = 0;
        for (path, file) in &mut self.files {
            let has_content = matches!(file.kind, ScannedKind::File | ScannedKind::Symlink);
            if has_content && file.stamp.is_recent(began) {
                total += file.stamp.size;
                file.digest =
                    (total <= MAX_HASHED_BYTES).then(|| content_digest(top_level, path, file)).flatten();
                self.is_conclusive &= file.digest.is_some();
            }
        }
    }

    /// Files, links and unread directories that are not in the index.
    pub(crate) fn extra<'a>(
        &'a self,
        index: IndexPaths<'a>,
    ) -> impl Iterator<Item = (&'a RepoPath, ScannedKind)> {
        let is_listed = |kind: ScannedKind| {
            matches!(kind, ScannedKind::File | ScannedKind::Symlink | ScannedKind::ToolDirectory)
        };
        let listed =
            self.files.iter().filter(move |(path, file)| is_listed(file.kind) && !index.contains(path));
        listed.map(|(path, file)| (path, file.kind))
    }
}

fn read_files(git: &Git, top_level: &Path, index: IndexPaths<'_>) -> Option<BTreeMap<RepoPath, ScannedFile>> {
    let mut files = BTreeMap::new();
    let mut extra = 0;
    if index.0.len() > MAX_ENTRIES {
        return None;
    }
    let mut directories = vec![RepoPath::new()];
    while let Some(directory) = directories.pop() {
        git.remaining().ok()?;
        for entry in fs::read_dir(on_disk(top_level, &directory)).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let path = match (directory.is_empty(), name.as_bytes()) {
                (true, b".git") => continue,
                // A nested repository.
                (false, b".git") => return None,
                (true, name) => name.to_vec(),
                (false, name) => [&directory, b"/".as_slice(), name].concat(),
            };
            let scanned = scan_entry(&entry, &path, index)?;
            if scanned.kind == ScannedKind::Directory {
                directories.push(path.clone());
                extra += usize::from(!index.has_below(&path));
            } else {
                extra += usize::from(!index.contains(&path));
            }
            files.insert(path, scanned);
            if files.len() > MAX_ENTRIES || extra > MAX_EXTRA {
                return None;
            }
        }
    }
    Some(files)
}

/// `None` if git must decide what the entry is.
fn scan_entry(entry: &DirEntry, path: &[u8], index: IndexPaths<'_>) -> Option<ScannedFile> {
    // Not followed if it is a link.
    let found = entry.metadata().ok()?;
    let plain = |kind| ScannedFile { kind, stamp: FullStamp::of(&found), digest: None };
    let directory = |kind, stamp| Some(ScannedFile { kind, stamp, digest: None });
    let in_index = index.entry(path);
    if !found.is_dir() {
        let replaces_directory = in_index.is_some_and(Entry::is_submodule) || index.has_below(path);
        let kind = match (found.is_file(), found.is_symlink()) {
            _ if replaces_directory => return None,
            (true, _) => ScannedKind::File,
            (_, true) => ScannedKind::Symlink,
            _ if in_index.is_some() => return None,
            _ => ScannedKind::Special,
        };
        return Some(plain(kind));
    }
    match in_index {
        Some(known) if known.is_submodule() => {
            let is_checked_out = fs::symlink_metadata(entry.path().join(".git")).is_ok();
            directory(ScannedKind::Submodule(is_checked_out), FullStamp::default())
        }
        Some(_) => None,
        None if is_tool_directory(entry.file_name().as_bytes()) && !index.has_below(path) => {
            directory(ScannedKind::ToolDirectory, FullStamp::default())
        }
        None => directory(ScannedKind::Directory, FullStamp::of_directory(&found)),
    }
}

/// The content of a file, or the target of a link; `None` if it is no longer the file that was scanned.
pub(crate) fn content(top_level: &Path, path: &[u8], scanned: &ScannedFile) -> Option<Vec<u8>> {
    let path = on_disk(top_level, path);
    if scanned.kind == ScannedKind::Symlink {
        return Some(fs::read_link(path).ok()?.as_os_str().as_bytes().to_vec());
    }
    let content = read_regular(&path, scanned.stamp.size, false)?;
    (content.len() as u64 == scanned.stamp.size).then_some(content)
}

fn content_digest(top_level: &Path, path: &[u8], scanned: &ScannedFile) -> Option<[u8; 32]> {
    content(top_level, path, scanned).map(|content| Sha256::digest(content).into())
}

#[expect(clippy::disallowed_methods, reason = "file times are compared with the clock")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
