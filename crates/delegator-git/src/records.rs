//! Parses and writes git's lists, which are separated by NUL, and the paths in them.
//!
//! Paths are bytes, because git does not require UTF-8. Output that does not match the format is an error.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{GitError, Result};

/// A path relative to the top of the work tree, as git prints it.
pub(crate) type RepoPath = Vec<u8>;

pub(crate) fn records(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

/// The text before the first separator and the path after it.
pub(crate) fn split_record(record: &[u8], separator: u8) -> Option<(&str, &[u8])> {
    let at = record.iter().position(|byte| *byte == separator)?;
    Some((str::from_utf8(&record[..at]).ok()?, &record[at + 1..]))
}

/// Records of paths, each behind a text that ends in a separator.
pub(crate) fn path_records<'a>(entries: impl IntoIterator<Item = (String, &'a RepoPath)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (text, path) in entries {
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(path);
        bytes.push(0);
    }
    bytes
}

/// Terminates each path with NUL, for git's standard input.
pub(crate) fn join_records<'a>(paths: impl IntoIterator<Item = &'a RepoPath>) -> Vec<u8> {
    path_records(paths.into_iter().map(|path| (String::new(), path)))
}

/// Parses what `git cat-file --batch` prints, `id SP type SP size LF content LF`, to ids and contents.
pub(crate) fn parse_batch(output: &[u8]) -> Result<Vec<(&str, &[u8])>> {
    let parse = || {
        let (mut rest, mut found) = (output, Vec::new());
        while !rest.is_empty() {
            let (header, content) = split_record(rest, b'\n')?;
            let [id, _, size] = header.split(' ').collect::<Vec<_>>()[..] else { return None };
            let (content, after) = content.split_at_checked(size.parse().ok()?)?;
            found.push((id, content));
            rest = after.strip_prefix(b"\n")?;
        }
        Some(found)
    };
    parse().ok_or(GitError::unexpected("cat-file"))
}

/// One line for each id or name, for git's standard input.
pub(crate) fn lines(names: impl IntoIterator<Item: Display>) -> String {
    names.into_iter().map(|name| format!("{name}\n")).collect()
}

pub(crate) fn output_text(output: &[u8]) -> String {
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

pub(crate) fn with_trailing_slash(path: &[u8]) -> RepoPath {
    [path, b"/"].concat()
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

pub(crate) const GITLINK: &str = "160000";

/// git's mode of a file, and the object id of its content.
pub(crate) type FileVersion = (String, String);

pub(crate) type TreeFiles = BTreeMap<RepoPath, FileVersion>;

/// Whether it is a file with content of its own, not a link or a submodule.
pub(crate) fn is_regular((mode, _): &FileVersion) -> bool {
    mode.starts_with("100")
}
