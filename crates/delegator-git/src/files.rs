//! Reads, copies, writes and removes single files, and reads their metadata. Never follows a symbolic link of
//! its own accord.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};

use crate::error::{GitError, Result};
use crate::records::{RepoPath, ancestors, on_disk};

/// The content of a regular file of at most `max_bytes`; `None` if it is anything else, such as a link.
pub(crate) fn read_regular(path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    // Opening a pipe must not block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut content = Vec::new();
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= max_bytes).then_some(content)
}

pub(crate) fn file_mode(top_level: &Path, path: &[u8]) -> Option<u32> {
    let found = fs::symlink_metadata(on_disk(top_level, path)).ok()?;
    found.is_file().then(|| found.permissions().mode() & 0o7777)
}

/// Whether everything in a directory is going to be removed.
pub(crate) fn contains_only(dir: &Path, path: &[u8], removed: &BTreeSet<&[u8]>) -> bool {
    let Ok(mut entries) = fs::read_dir(dir) else { return false };
    entries.all(|entry| {
        let Ok(entry) = entry else { return false };
        let inner = [path, b"/", entry.file_name().as_bytes()].concat();
        if entry.file_type().is_ok_and(|found| found.is_dir()) {
            contains_only(&entry.path(), &inner, removed)
        } else {
            removed.contains(inner.as_slice())
        }
    })
}

/// The permission bits of a directory; `None` if there is none at the path. Links are not followed.
pub(crate) fn directory_mode(top: &Path, path: &[u8]) -> Option<u32> {
    let found = fs::symlink_metadata(on_disk(top, path)).ok()?;
    found.is_dir().then(|| found.permissions().mode() & 0o7777)
}

pub(crate) fn remove_file(path: &Path) -> Result<()> {
    if_exists(fs::remove_file(path)).map(drop).map_err(GitError::io("delete", path))
}

pub(crate) fn remove_directory(path: &Path) -> Result<()> {
    if_exists(fs::remove_dir_all(path)).map(drop).map_err(GitError::io("delete", path))
}

/// `None` if there is nothing at the path.
pub(crate) fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Whether there is something at the path; `None` if that is unknown. Links are not followed.
pub(crate) fn exists(path: &Path) -> Option<bool> {
    Some(if_exists(fs::symlink_metadata(path)).ok()?.is_some())
}

/// Writes the file atomically. Without `may_replace` an existing file is an error.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8], may_replace: bool) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    let persisted = if may_replace { file.persist(path) } else { file.persist_noclobber(path) };
    persisted.map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

pub(crate) fn remove_empty_parents(top: &Path, path: &[u8]) {
    let parents: Vec<&[u8]> = ancestors(path).collect();
    for above in parents.into_iter().rev() {
        if fs::remove_dir(on_disk(top, above)).is_err() {
            return;
        }
    }
}

/// Copies a regular file with its modification time: git compares the index's time with its entries to find
/// racy ones.
pub(crate) fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let found = fs::metadata(from)?;
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    fs::copy(from, to)?;
    fs::set_permissions(to, Permissions::from_mode(0o600))?;
    File::options().write(true).open(to)?.set_modified(found.modified()?)
}

pub(crate) fn identity_of(dir: &Path) -> Option<(u64, u64)> {
    fs::metadata(dir).ok().map(|found| (found.dev(), found.ino()))
}

/// What files were when they were read; `None` if there was none.
pub(crate) type Stamps = BTreeMap<RepoPath, Option<Stamp>>;

/// A write changes the stamp, unless the writer deliberately restores size and modification time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    inode: u64,
    pub(crate) size: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Stamp {
    pub(crate) fn of(found: &Metadata) -> Stamp {
        Stamp {
            inode: found.ino(),
            size: found.size(),
            seconds: found.mtime(),
            nanoseconds: found.mtime_nsec(),
        }
    }

    pub(crate) fn to_text(self) -> String {
        format!("{} {} {} {}", self.inode, self.size, self.seconds, self.nanoseconds)
    }

    pub(crate) fn parse(text: &str) -> Option<Stamp> {
        let mut numbers = text.split(' ');
        let stamp = Stamp {
            inode: numbers.next()?.parse().ok()?,
            size: numbers.next()?.parse().ok()?,
            seconds: numbers.next()?.parse().ok()?,
            nanoseconds: numbers.next()?.parse().ok()?,
        };
        numbers.next().is_none().then_some(stamp)
    }

    /// A fingerprint of all files below a directory, except git's own: their number, total size and newest
    /// time. It never follows a symbolic link, and leaves out what cannot be read.
    pub(crate) fn of_directory(dir: &Path) -> Stamp {
        let mut stamp = Stamp::default();
        let mut folders = vec![dir.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| entry.file_name() != ".git") {
                let Ok(found) = entry.metadata() else { continue };
                if found.is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                stamp.inode += 1;
                stamp.size = stamp.size.wrapping_add(found.size());
                let newest = (stamp.seconds, stamp.nanoseconds).max((found.mtime(), found.mtime_nsec()));
                (stamp.seconds, stamp.nanoseconds) = newest;
            }
        }
        stamp
    }

    pub(crate) fn at(path: &Path) -> Option<Stamp> {
        fs::symlink_metadata(path).ok().as_ref().map(Stamp::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "12345").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        // Opening this would block until a writer comes.
        rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), 0o600.into()).unwrap();
        assert_eq!(read_regular(&at("file"), 5).unwrap(), b"12345");
        assert_eq!(read_regular(&at("file"), 4), None);
        for name in ["link", "fifo", "none", "."] {
            assert_eq!(read_regular(&at(name), 5), None, "{name}");
        }
    }
}
