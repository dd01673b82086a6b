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

    /// The four numbers, separated by spaces.
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

    /// `None` if the path does not exist.
    pub(crate) fn at(path: &Path) -> Option<Stamp> {
        fs::symlink_metadata(path).ok().as_ref().map(Stamp::of)
    }
}
