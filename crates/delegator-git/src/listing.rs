//! Parses git's NUL-terminated lists.
//!
//! Paths are bytes, because git does not require UTF-8. Output that does not match the format is an error.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::GitError;

/// A path relative to the top of the work tree, as git prints it.
pub(crate) type RepoPath = Vec<u8>;

pub(crate) const GITLINK: &str = "160000";

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

/// The header of a file in raw diff output: `:oldmode newmode oldid newid status`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiffHeader<'a> {
    pub(crate) old_mode: &'a str,
    pub(crate) new_mode: &'a str,
    pub(crate) new_id: &'a str,
    /// `A`, `D`, `M`, `R`, `T` or `U`.
    pub(crate) status: u8,
}

impl<'a> DiffHeader<'a> {
    pub(crate) fn parse(record: &'a [u8]) -> Option<DiffHeader<'a>> {
        let mut fields = str::from_utf8(record).ok()?.strip_prefix(':')?.splitn(5, ' ');
        let (old_mode, new_mode, _) = (fields.next()?, fields.next()?, fields.next()?);
        let (new_id, status) = (fields.next()?, *fields.next()?.as_bytes().first()?);
        Some(DiffHeader { old_mode, new_mode, new_id, status })
    }

    pub(crate) fn is_submodule(&self) -> bool {
        self.old_mode == GITLINK || self.new_mode == GITLINK
    }
}

/// One file of raw diff output without renames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) is_submodule: bool,
    pub(crate) is_deleted: bool,
    pub(crate) path: RepoPath,
}

/// Parses the output of `diff-files`: header NUL path NUL …
pub(crate) fn parse_raw_diff(output: &[u8]) -> Result<Vec<Change>, GitError> {
    let unreadable = || GitError::UnexpectedOutput { command: "diff-files" };
    let mut found = Vec::new();
    let mut records = records(output);
    while let Some(record) = records.next() {
        let header = DiffHeader::parse(record).ok_or_else(unreadable)?;
        let path = records.next().ok_or_else(unreadable)?.to_vec();
        let is_submodule = header.old_mode == GITLINK;
        found.push(Change { is_submodule, is_deleted: header.status == b'D', path });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_diff_output_is_parsed() {
        let parsed = parse_raw_diff(b":100644 000000 aa bb D\0a b\nc\0:000000 120000 aa bb A\0l\0").unwrap();
        assert_eq!(parsed.len(), 2);
        assert_eq!((parsed[0].is_deleted, parsed[0].path.as_slice()), (true, b"a b\nc".as_slice()));
        assert!(!parsed[1].is_deleted);
        assert_eq!(DiffHeader::parse(b":000000 120000 aa bb A").unwrap().new_mode, "120000");
        assert!(parse_raw_diff(b":100644 000000 aa bb D\0").is_err());
    }
}
