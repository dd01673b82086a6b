//! Lists which files differ, which were renamed, and how many lines changed.
//!
//! Paths are bytes. Submodules are left out. Output that does not match the format is an error, never a
//! partial list.

use std::collections::BTreeMap;

use crate::error::{GitError, Result};
use crate::records::{FileVersion, GITLINK, RepoPath, records};
use crate::scratch::{Scratch, WORK_INDEX};

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

/// A path that differs, and its new version; `None` if it no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewVersion {
    pub(crate) path: RepoPath,
    pub(crate) version: Option<FileVersion>,
    /// Whether the path existed before.
    pub(crate) existed: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct RawChange {
    pub(crate) kind: ChangeKind,
    pub(crate) path: RepoPath,
    pub(crate) new: FileVersion,
    pub(crate) is_submodule: bool,
    lines: Option<(u64, u64)>,
}

impl RawChange {
    pub(crate) fn is_deleted(&self) -> bool {
        self.kind == ChangeKind::Deleted
    }

    pub(crate) fn into_file_change(self) -> FileChange {
        FileChange { kind: self.kind, path: self.path, lines: self.lines }
    }

    /// One entry per path; a renamed file has two.
    pub(crate) fn new_versions(&self) -> impl Iterator<Item = NewVersion> {
        let from = match &self.kind {
            ChangeKind::Renamed { from } => Some(from.clone()),
            _ => None,
        };
        let from = from.map(|path| NewVersion { path, version: None, existed: true });
        let existed = matches!(self.kind, ChangeKind::Modified | ChangeKind::Deleted);
        let version = (!self.is_deleted()).then(|| self.new.clone());
        from.into_iter().chain([NewVersion { path: self.path.clone(), version, existed }])
    }
}

/// Runs a command that prints raw differences.
pub(crate) fn raw_diff(
    scratch: &Scratch,
    index: &str,
    command: &str,
    options: &[&str],
) -> Result<Vec<RawChange>> {
    let args = [command, "--raw", "-z", "--no-ext-diff"];
    parse_raw_diff(&scratch.run(index, args.iter().chain(options), b"")?)
}

/// Compares our copy of the index with the work tree, ignoring submodules.
pub(crate) fn changed_on_disk(scratch: &Scratch) -> Result<Vec<RawChange>> {
    raw_diff(scratch, WORK_INDEX, "diff-files", &["--no-renames", "--ignore-submodules=all"])
}

/// Parses raw diff output with `-z`: one record with one or two paths per file, then their line counts, if
/// any.
///
/// ```text
/// :100644 100644 aa bb M NUL path NUL …      :100644 100644 aa bb R090 NUL from NUL to NUL …
/// 3 TAB 1 TAB path NUL …                     3 TAB 1 TAB NUL from NUL to NUL …
/// ```
fn parse_raw_diff(output: &[u8]) -> Result<Vec<RawChange>> {
    parse(output).ok_or(GitError::unexpected("diff"))
}

fn parse(output: &[u8]) -> Option<Vec<RawChange>> {
    let (mut found, mut lines) = (Vec::new(), BTreeMap::new());
    let mut records = records(output);
    while let Some(record) = records.next() {
        let mut next = || records.next().map(<[u8]>::to_vec);
        if let Some(header) = record.strip_prefix(b":") {
            let fields: Vec<&str> = str::from_utf8(header).ok()?.split(' ').collect();
            let [old_mode, mode, _, id, status] = fields[..] else { return None };
            let first = next()?;
            let (kind, path) = match status.as_bytes().first()? {
                b'A' => (ChangeKind::Added, first),
                b'D' => (ChangeKind::Deleted, first),
                b'M' | b'T' | b'U' => (ChangeKind::Modified, first),
                b'R' => (ChangeKind::Renamed { from: first }, next()?),
                _ => return None,
            };
            let is_submodule = old_mode == GITLINK || mode == GITLINK;
            let new = (mode.to_owned(), id.to_owned());
            found.push(RawChange { kind, path, new, is_submodule, lines: None });
            continue;
        }
        let [added, deleted, path] = record.splitn(3, |byte| *byte == b'\t').collect::<Vec<_>>()[..] else {
            return None;
        };
        // A renamed file has its two paths behind the counts.
        let path = if path.is_empty() { next().and_then(|_| next())? } else { path.to_vec() };
        let number = |column: &[u8]| str::from_utf8(column).ok()?.parse::<u64>().ok();
        // For a binary file git prints two dashes.
        lines.insert(path, number(added).zip(number(deleted)).unwrap_or_default());
    }
    for file in &mut found {
        file.lines = lines.remove(&file.path);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_renames_and_line_counts_are_parsed() {
        let output = b":100644 100644 aa bb M\0:odd\tname\0:100644 100644 aa bb R090\0old\0new\0\
                     :000000 100644 00 bb A\0pic\0:160000 160000 aa bb M\0sub\0\
                     3\t1\t:odd\tname\0\x32\t0\t\0old\0new\0-\t-\tpic\0\x31\t1\tsub\0";
        let mut parsed = parse_raw_diff(output).unwrap();
        assert!(parsed.pop().unwrap().is_submodule);
        let versions: Vec<NewVersion> = parsed.iter().flat_map(RawChange::new_versions).collect();
        let change = |kind, path: &[u8], lines| FileChange { kind, path: path.to_vec(), lines };
        assert_eq!(
            parsed.into_iter().map(RawChange::into_file_change).collect::<Vec<_>>(),
            [
                change(ChangeKind::Modified, b":odd\tname", Some((3, 1))),
                change(ChangeKind::Renamed { from: b"old".to_vec() }, b"new", Some((2, 0))),
                change(ChangeKind::Added, b"pic", Some((0, 0))),
            ]
        );
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
        assert!(parse_raw_diff(b"").unwrap().is_empty());
        for truncated in [b":100644 100644 aa bb M\0".as_slice(), b":x\0a\0", b"3\t1\0", b"1\t1\t\0old\0"] {
            assert!(parse_raw_diff(truncated).is_err(), "{truncated:?}");
        }
    }

    #[test]
    fn raw_diff_output_is_parsed() {
        let parsed = parse_raw_diff(b":100644 000000 aa bb D\0a b\nc\0:000000 120000 aa bb A\0l\0").unwrap();
        assert_eq!(parsed.len(), 2);
        assert_eq!((parsed[0].is_deleted(), parsed[0].path.as_slice()), (true, b"a b\nc".as_slice()));
        assert!(!parsed[1].is_deleted());
        assert_eq!(parsed[1].new.0, "120000");
        assert!(parse_raw_diff(b":100644 000000 aa bb D\0").is_err());
    }
}
