//! Writing so that it is there after a power cut, and private whatever the umask.
//!
//! A file is durable when its bytes *and* its name are: the file is synced, then its directory. A failed sync is an
//! error of the whole step; it is never tried again, because the kernel may have dropped what it could not write.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// Opens for writing with `options`; a file that is made by it is 0600, whatever the umask takes away or leaves.
pub(crate) fn open_private(path: &Path, options: &mut fs::OpenOptions) -> io::Result<File> {
    let file = options.mode(FILE_MODE).open(path)?;
    if file.metadata()?.permissions().mode() & 0o777 != FILE_MODE {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(file)
}

/// Opens a file for reading without noting when it was read. The note would be a write, and where many tasks make the disk
/// busy, a status would wait for it, once for each of the tasks it looks at.
pub(crate) fn open_noatime(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        // Only the owner may ask for that.
        Err(Errno::PERM) => Ok(rustix::fs::open(path, flags, Mode::empty())?.into()),
        opened => Ok(opened?.into()),
    }
}

/// Makes one directory that must not exist yet, 0700 from the first moment. A umask can only take bits away; they are
/// given back.
pub(crate) fn make_new_private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))
}

/// Makes one directory, 0700. One that is already there is left as it is.
pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    match make_new_private_dir(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a directory and what is missing above it, and syncs every name that was added.
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

/// Writes a file that must not exist yet, and syncs it. Its name is durable once the directory is synced.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_private(path, fs::OpenOptions::new().write(true).create_new(true))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// How much a replaced file has to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A reader sees the old or the new file; after a power cut it may be either, or empty.
    Atomic,
    /// And after a power cut it is the new one.
    Synced,
}

/// Replaces a file by rename. One writer at a time: whoever holds the task's lock.
pub(crate) fn replace(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
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
        // On a full disk half a file would keep the very space that is missing.
        let _ = fs::remove_file(new);
    }
    written?;
    match (durability, path.parent()) {
        (Durability::Synced, Some(parent)) => sync_dir(parent),
        _ => Ok(()),
    }
}

/// Removes a file that may be gone already.
pub(crate) fn remove_if_exists(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether an error says that there is no room left.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
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
