//! Parses the output of `git diff-tree`: which files differ, which were renamed, how many lines changed.
//!
//! Paths are bytes. Submodules are left out. Output that does not match the format is an error, never a partial list.

use std::collections::BTreeMap;

use crate::error::GitError;
use crate::file_version::{FileVersion, GITLINK};
use crate::records::{RepoPath, records};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    #[default]
    Modified,
    Deleted,
    Renamed {
        from: Vec<u8>,
    },
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub kind: ChangeKind,
    /// Relative to the top of the work tree, as bytes.
    pub path: Vec<u8>,
    /// Lines added and removed, 0 for a binary file; `None` if they were not counted.
    pub lines: Option<(u64, u64)>,
}

impl FileChange {
    pub(crate) fn unread(kind: ChangeKind, path: &RepoPath) -> FileChange {
        FileChange { kind, path: path.clone(), lines: None }
    }
}

/// Parses `diff-tree -z --raw --numstat`: first one record with one or two paths per file, then its line counts.
///
/// ```text
/// :100644 100644 aa bb M NUL path NUL …      :100644 100644 aa bb R090 NUL from NUL to NUL …
/// 3 TAB 1 TAB path NUL …                     3 TAB 1 TAB NUL from NUL to NUL …
/// ```
pub(crate) fn parse_file_changes(output: &[u8]) -> Result<Vec<FileChange>, GitError> {
    let unreadable = || GitError::UnexpectedOutput { command: "diff-tree" };
    let (mut found, mut lines) = (Vec::new(), BTreeMap::new());
    let mut records = records(output);
    while let Some(record) = records.next() {
        let mut next = || records.next().map(<[u8]>::to_vec).ok_or_else(unreadable);
        if record.starts_with(b":") {
            let header = DiffHeader::parse(record).ok_or_else(unreadable)?;
            let first = next()?;
            let (kind, path) = match header.status {
                b'A' => (ChangeKind::Added, first),
                b'D' => (ChangeKind::Deleted, first),
                b'M' | b'T' => (ChangeKind::Modified, first),
                b'R' => (ChangeKind::Renamed { from: first }, next()?),
                _ => return Err(unreadable()),
            };
            if !header.is_submodule() {
                found.push(FileChange { kind, path, lines: None });
            }
            continue;
        }
        let mut columns = record.splitn(3, |byte| *byte == b'\t');
        let (added, deleted) = (columns.next(), columns.next().ok_or_else(unreadable)?);
        let path = match columns.next().ok_or_else(unreadable)? {
            b"" => {
                next()?;
                next()?
            }
            path => path.to_vec(),
        };
        let number = |column: &[u8]| std::str::from_utf8(column).ok()?.parse::<u64>().ok();
        // For a binary file git prints two dashes.
        lines.insert(path, added.and_then(number).zip(number(deleted)).unwrap_or_default());
    }
    for file in &mut found {
        file.lines = lines.remove(&file.path);
    }
    Ok(found)
}

/// A path that differs, and its new version; `None` if it no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewVersion {
    pub(crate) path: RepoPath,
    pub(crate) version: Option<FileVersion>,
    /// Whether the path existed before.
    pub(crate) existed: bool,
}

/// Parses the same output into one entry per path; a renamed file has two.
pub(crate) fn parse_new_versions(output: &[u8]) -> Result<Vec<NewVersion>, GitError> {
    let unreadable = || GitError::UnexpectedOutput { command: "diff-tree" };
    let mut versions = Vec::new();
    let mut records = records(output);
    // The line counts follow the last header.
    while let Some(record) = records.next().filter(|record| record.starts_with(b":")) {
        let header = DiffHeader::parse(record).ok_or_else(unreadable)?;
        let mut path = records.next().ok_or_else(unreadable)?.to_vec();
        if header.status == b'R' {
            versions.push(NewVersion { path, version: None, existed: true });
            path = records.next().ok_or_else(unreadable)?.to_vec();
        }
        if !header.is_submodule() {
            let version = (header.new_mode.to_owned(), header.new_id.to_owned());
            let version = (header.status != b'D').then_some(version);
            versions.push(NewVersion { path, version, existed: !matches!(header.status, b'A' | b'R') });
        }
    }
    Ok(versions)
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
    fn files_renames_and_line_counts_are_parsed() {
        let output = b":100644 100644 aa bb M\0:odd\tname\0:100644 100644 aa bb R090\0old\0new\0\
                     :000000 100644 00 bb A\0pic\0:160000 160000 aa bb M\0sub\0\
                     3\t1\t:odd\tname\0\x32\t0\t\0old\0new\0-\t-\tpic\0\x31\t1\tsub\0";
        let change = |kind, path: &[u8], lines| FileChange { kind, path: path.to_vec(), lines };
        assert_eq!(
            parse_file_changes(output).unwrap(),
            [
                change(ChangeKind::Modified, b":odd\tname", Some((3, 1))),
                change(ChangeKind::Renamed { from: b"old".to_vec() }, b"new", Some((2, 0))),
                change(ChangeKind::Added, b"pic", Some((0, 0))),
            ]
        );
        let versions = parse_new_versions(output).unwrap();
        let version = |path: &[u8], id: Option<&str>, existed| {
            let version = id.map(|id| ("100644".to_owned(), id.to_owned()));
            NewVersion { path: path.to_vec(), version, existed }
        };
        assert_eq!(
            versions,
            [
                version(b":odd\tname", Some("bb"), true),
                version(b"old", None, true),
                version(b"new", Some("bb"), false),
                version(b"pic", Some("bb"), false),
            ]
        );
        assert_eq!(parse_file_changes(b"").unwrap(), []);
        for truncated in [b":100644 100644 aa bb M\0".as_slice(), b":x\0a\0", b"3\t1\0", b"1\t1\t\0old\0"] {
            assert!(parse_file_changes(truncated).is_err(), "{truncated:?}");
        }
    }

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
