//! A fingerprint of a file's metadata, to detect changes without reading the file.
//!
//! A write changes the stamp, unless the writer deliberately restores size and modification time.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
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

    /// `None` if the path does not exist.
    pub(crate) fn at(path: &Path) -> Option<Stamp> {
        fs::symlink_metadata(path).ok().as_ref().map(Stamp::of)
    }
}
