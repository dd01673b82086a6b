//! Identifies a version of a file without opening it. A file that is replaced or changed has another stamp,
//! unless its old inode, size and time all return.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Inode, size, seconds and nanoseconds of the modification time.
pub(crate) type FileStamp = [u64; 4];

pub(crate) fn file_stamp(metadata: &Metadata) -> FileStamp {
    [metadata.ino(), metadata.size(), metadata.mtime().cast_unsigned(), metadata.mtime_nsec().cast_unsigned()]
}
