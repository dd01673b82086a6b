//! Requires that a directory or a file belongs to this user alone: refuses those of others, removes group and
//! world permissions. A directory's permissions are changed through a descriptor that was opened without
//! following links.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::error::StateDirError;

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
