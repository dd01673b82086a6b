//! Files that survive a power cut, and files and directories that belong to this user alone.
//!
//! A file is durable when its bytes *and* its name are: sync the file, then its directory. A failed sync
//! fails the whole operation and is never retried, because the kernel may have dropped the data. Everything
//! is private under any umask; files of others are refused.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::StateDirError;

const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// Opens for writing with `options`; a file created by this is 0600 under any umask.
pub(crate) fn open_private(path: &Path, options: &mut fs::OpenOptions) -> io::Result<File> {
    let file = options.mode(FILE_MODE).open(path)?;
    if file.metadata()?.permissions().mode() & 0o777 != FILE_MODE {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(file)
}

/// Opens for reading without updating the access time. That update would be a write, and on a busy disk a
/// status query would wait for one write per task.
pub(crate) fn open_noatime(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        // Only the owner may use O_NOATIME.
        Err(Errno::PERM) => Ok(rustix::fs::open(path, flags, Mode::empty())?.into()),
        opened => Ok(opened?.into()),
    }
}

/// Creates a directory that must not exist yet, with mode 0700 from the start. A umask can only remove bits;
/// they are set again.
pub(crate) fn make_new_private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))
}

/// Creates a directory with mode 0700. An existing one is left unchanged.
pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    match make_new_private_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Creates a directory and its missing parents, and syncs every new name.
pub fn make_private_path(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        make_private_path(parent)?;
    }
    make_private_dir(path)?;
    parent.map_or(Ok(()), sync_dir)
}

pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Writes and syncs a file that must not exist yet. Its name is durable once the directory is synced.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_private(path, fs::OpenOptions::new().write(true).create_new(true))?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A reader gets the old or the new file; after a power cut it may be either, or empty.
    Atomic,
    /// In addition, it is the new file after a power cut.
    Synced,
}

/// Replaces a file by rename. Only one writer at a time: the holder of a lock, such as that of the task.
pub fn replace(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = Path::new(&name);
    let written = (|| {
        let options = &mut fs::OpenOptions::new();
        let mut file = open_private(new, options.write(true).create(true).truncate(true))?;
        file.write_all(bytes)?;
        if durability == Durability::Synced {
            file.sync_all()?;
        }
        fs::rename(new, path)
    })();
    if written.is_err() {
        // On a full disk a partial file would take the space that is needed.
        let _ = fs::remove_file(new);
    }
    written?;
    match (durability, path.parent()) {
        (Durability::Synced, Some(parent)) => sync_dir(parent),
        _ => Ok(()),
    }
}

/// Opens a file to lock it, creating it if needed.
pub(crate) fn open_lock_file(path: &Path) -> io::Result<File> {
    open_private(path, fs::OpenOptions::new().read(true).write(true).create(true).truncate(false))
}

/// The result of an operation on a file that may not exist; `None` if it does not.
pub(crate) fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Removes a file that may not exist. Returns whether it did.
pub fn remove_if_exists(path: &Path) -> io::Result<bool> {
    Ok(if_exists(fs::remove_file(path))?.is_some())
}

pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Directory,
    File,
}

pub(crate) fn require_private_if_exists(path: &Path, kind: EntryKind) -> Result<(), StateDirError> {
    match require_private(path, kind) {
        // SQLite deletes its log when the last process closes the registry, at any moment.
        Err(StateDirError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        checked => checked,
    }
}

/// Fails if the path is not ours; removes group and world permissions.
pub(crate) fn require_private(path: &Path, kind: EntryKind) -> Result<(), StateDirError> {
    let found = fs::symlink_metadata(path).map_err(StateDirError::io(path, "inspect"))?;
    let path = path.to_owned();
    match kind {
        EntryKind::File if !found.is_file() => return Err(StateDirError::NotOurFile { path }),
        EntryKind::Directory if found.is_symlink() => return Err(StateDirError::Symlink { path }),
        EntryKind::Directory if !found.is_dir() => return Err(StateDirError::NotADirectory { path }),
        _ => {}
    }
    let uid = rustix::process::geteuid().as_raw();
    if found.uid() != uid {
        return Err(StateDirError::OtherOwner { path, owner: found.uid(), uid });
    }
    if found.permissions().mode() & 0o077 != 0 {
        tighten(&path, kind).map_err(StateDirError::io(&path, "restrict the permissions of"))?;
    }
    Ok(())
}

fn tighten(path: &Path, kind: EntryKind) -> io::Result<()> {
    match kind {
        EntryKind::Directory => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = rustix::fs::open(path, flags, Mode::empty())?;
            Ok(rustix::fs::fchmod(&fd, Mode::RWXU)?)
        }
        // By path and never through a descriptor of our own: closing it would drop every lock that SQLite
        // holds on this file in this process. The directory is private by now, so no other user can replace
        // the file.
        EntryKind::File => fs::set_permissions(path, fs::Permissions::from_mode(0o600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacing_a_file_leaves_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        for durability in [Durability::Atomic, Durability::Synced] {
            replace(&path, b"one", durability).unwrap();
            replace(&path, b"two", durability).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"two");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn write_new_refuses_an_existing_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("launch");
        write_new(&path, b"one").unwrap();
        assert_eq!(write_new(&path, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn missing_parents_are_created_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c");
        make_private_path(&path).unwrap();
        for part in ["a", "a/b", "a/b/c"] {
            let mode = fs::metadata(dir.path().join(part)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{part}");
        }
    }
}
