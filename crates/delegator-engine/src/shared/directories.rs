//! Measures and removes whole directories, and identifies the version of a file without opening it.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

const BLOCK_BYTES: u64 = 512;

/// The disk space of everything below a directory. What cannot be read does not count.
pub(crate) fn disk_usage(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .map(|(path, found)| {
            let own = found.blocks() * BLOCK_BYTES;
            if found.is_dir() { own + disk_usage(&path) } else { own }
        })
        .sum()
}

/// Removes a directory, or what took its place, also one whose owner made parts of it read-only.
pub fn remove_directory(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Something else took its place.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => fs::remove_file(dir),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(dir)?;
            fs::remove_dir_all(dir)
        }
        outcome => outcome,
    }
}

fn make_writable(dir: &Path) -> io::Result<()> {
    fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

/// Inode, size, seconds and nanoseconds of the modification time. A file that is replaced or changed has
/// another stamp, unless all of them return.
pub(crate) type FileStamp = [u64; 4];

pub(crate) fn file_stamp(metadata: &Metadata) -> FileStamp {
    [metadata.ino(), metadata.size(), metadata.mtime().cast_unsigned(), metadata.mtime_nsec().cast_unsigned()]
}
