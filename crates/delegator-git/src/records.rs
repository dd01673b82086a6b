//! Parses git's NUL-terminated lists.
//!
//! Paths are bytes, because git does not require UTF-8. Output that does not match the format is an error.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path relative to the top of the work tree, as git prints it.
pub(crate) type RepoPath = Vec<u8>;

/// Records of paths as git reads and writes them with `-z`: entry, TAB, path, NUL.
pub(crate) fn path_records<'a>(entries: impl IntoIterator<Item = (String, &'a RepoPath)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (entry, path) in entries {
        bytes.extend_from_slice(entry.as_bytes());
        bytes.push(b'\t');
        bytes.extend_from_slice(path);
        bytes.push(0);
    }
    bytes
}

pub(crate) fn records(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

/// Terminates each path with NUL, for git's standard input.
pub(crate) fn join_records<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(path);
        bytes.push(0);
    }
    bytes
}

/// The output without its line break.
pub(crate) fn single_line(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end_matches('\n').to_owned()
}

pub(crate) fn on_disk(top_level: &Path, path: &[u8]) -> PathBuf {
    top_level.join(OsStr::from_bytes(path))
}

/// A path as text, for messages and records. Not reversible for paths that are not UTF-8.
pub fn display_path(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// The parent directories of a path, outermost first, without the top.
pub(crate) fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at])
}

pub(crate) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn parse_hex(id: &str) -> Option<Vec<u8>> {
    (0..id.len()).step_by(2).map(|at| u8::from_str_radix(id.get(at..at + 2)?, 16).ok()).collect()
}

pub(crate) fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
