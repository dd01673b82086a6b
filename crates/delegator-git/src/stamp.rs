//! A fingerprint of a file's metadata, to detect changes without reading the file.
//!
//! A write changes the stamp, unless the writer deliberately restores size and modification time.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::records::RepoPath;

/// What files were when they were read; `None` if there was none.
pub(crate) type Stamps = BTreeMap<RepoPath, Option<Stamp>>;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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

    /// The size of the file in bytes.
    pub(crate) fn size(self) -> u64 {
        self.size
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

    /// `None` if the path does not exist.
    pub(crate) fn at(path: &Path) -> Option<Stamp> {
        fs::symlink_metadata(path).ok().as_ref().map(Stamp::of)
    }
}
