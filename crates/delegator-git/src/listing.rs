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
pub(crate) fn display_path(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// One line of raw diff output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old_mode: String,
    pub(crate) new_mode: String,
    /// `A`, `D`, `M`, `T` or `U`.
    pub(crate) status: u8,
    pub(crate) path: RepoPath,
}

/// `:oldmode newmode oldid newid status NUL path NUL …`
pub(crate) fn parse_raw_diff(output: &[u8], command: &'static str) -> Result<Vec<Change>, GitError> {
    let unreadable = || GitError::UnexpectedOutput { command };
    let mut found = Vec::new();
    let mut records = records(output);
    while let Some(header) = records.next() {
        let header = std::str::from_utf8(header).map_err(|_| unreadable())?;
        let fields: Vec<&str> = header.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, _, _, status] = fields.as_slice() else { return Err(unreadable()) };
        found.push(Change {
            old_mode: (*old_mode).to_owned(),
            new_mode: (*new_mode).to_owned(),
            status: *status.as_bytes().first().ok_or_else(unreadable)?,
            path: records.next().ok_or_else(unreadable)?.to_vec(),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_diff_output_is_parsed() {
        let parsed =
            parse_raw_diff(b":100644 000000 aa bb D\0a b\nc\0:000000 120000 aa bb A\0l\0", "diff").unwrap();
        assert_eq!(parsed.len(), 2);
        assert_eq!((parsed[0].status, parsed[0].path.as_slice()), (b'D', b"a b\nc".as_slice()));
        assert_eq!(parsed[1].new_mode, "120000");
        assert!(parse_raw_diff(b":100644 000000 aa bb D\0", "diff").is_err());
    }
}
