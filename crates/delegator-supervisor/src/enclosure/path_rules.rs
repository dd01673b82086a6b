//! The paths that an enclosure is about.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathRules {
    pub writable: Vec<WritablePath>,
    /// Paths in writable directories that the agent must not change; only bubblewrap can enforce it.
    pub protected: Vec<PathBuf>,
    /// Files and directories that the agent must not read, without symbolic links. Landlock cannot hide them.
    pub hidden: Vec<PathBuf>,
}

/// A file or directory that was opened and checked. Only the same file may be made writable, whatever the
/// path leads to by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritablePath {
    /// Absolute, without symbolic links.
    pub path: PathBuf,
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl WritablePath {
    /// The file that is open as `file`.
    pub fn of(path: &Path, file: &OwnedFd) -> io::Result<WritablePath> {
        let found = rustix::fs::fstat(file)?;
        Ok(WritablePath { path: path.to_owned(), device: found.st_dev, inode: found.st_ino })
    }

    pub fn resolve(path: &Path) -> io::Result<WritablePath> {
        let real = path.canonicalize()?;
        let file = open_path(&real)?;
        WritablePath::of(&real, &file)
    }

    /// Opens the path, unless it leads to another file by now.
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        let file = open_path(&self.path)?;
        if WritablePath::of(&self.path, &file)? == *self {
            return Ok(file);
        }
        Err(io::Error::other("it was replaced after it was checked"))
    }
}

/// The descriptor identifies the file but cannot be used to read or write it.
pub(super) fn open_path(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_to_another_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (path, other) = (root.join("state"), root.join("other"));
        std::fs::create_dir(&path).unwrap();
        std::fs::create_dir(&other).unwrap();
        let checked = WritablePath::resolve(&path).unwrap();
        checked.open().unwrap();
        std::fs::rename(&path, root.join("moved")).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(checked.open().is_err(), "a symbolic link");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(checked.open().is_err(), "another directory of the same name");
    }
}
