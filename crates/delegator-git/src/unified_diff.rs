//! Reads unified diffs: the files of a diff, their headers and their hunks. Pure.
//!
//! Lines of a hunk are counted, so file content is never mistaken for a header. Any bytes are accepted: what is not part
//! of a diff is skipped. Whether a diff is valid and what it makes of a file is decided by git, never here.

use std::ops::Range;

use crate::diff::ChangeKind;
use crate::listing::RepoPath;

/// The part of a diff that concerns one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff<'a> {
    /// The path after the change; of a deleted file, the path before.
    pub path: Vec<u8>,
    /// A copied file counts as added.
    pub kind: ChangeKind,
    pub old_mode: Option<String>,
    pub new_mode: Option<String>,
    /// A binary file has no hunks.
    pub is_binary: bool,
    pub hunks: Vec<DiffHunk<'a>>,
    /// The diff of this file alone.
    pub bytes: &'a [u8],
}

/// One hunk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffHunk<'a> {
    pub old_start: u64,
    pub old_lines: u64,
    pub new_start: u64,
    pub new_lines: u64,
    /// What follows the ranges, usually the enclosing function.
    pub header: &'a [u8],
    /// The lines with their sign and without their line break.
    pub lines: Vec<&'a [u8]>,
}

impl FileDiff<'_> {
    /// The numbers of added and deleted lines.
    pub fn line_counts(&self) -> (u64, u64) {
        let lines = || self.hunks.iter().flat_map(|hunk| &hunk.lines);
        let count = |sign: u8| lines().filter(|line| line.first() == Some(&sign)).count() as u64;
        (count(b'+'), count(b'-'))
    }

    /// The path before the change, if it is another one.
    pub fn old_path(&self) -> Option<&[u8]> {
        match &self.kind {
            ChangeKind::Renamed { from } => Some(from),
            ChangeKind::Added | ChangeKind::Modified | ChangeKind::Deleted => None,
        }
    }
}

/// The files of a diff, in its order. A file that becomes a symbolic link, or the reverse, is one change.
pub fn parse_unified_diff(diff: &[u8]) -> Vec<FileDiff<'_>> {
    let mut files: Vec<FileDiff<'_>> = Vec::new();
    let mut last_start = 0;
    for part in split_parts(diff) {
        let range = part.range.clone();
        let file = part.into_file(diff);
        match files.last_mut() {
            // git prints the deleted and the created file one after the other.
            Some(before)
                if before.kind == ChangeKind::Deleted
                    && file.kind == ChangeKind::Added
                    && before.path == file.path =>
            {
                before.bytes = &diff[last_start..range.end];
                before.kind = ChangeKind::Modified;
                before.new_mode = file.new_mode;
                before.is_binary |= file.is_binary;
                before.hunks.extend(file.hunks);
            }
            _ => {
                last_start = range.start;
                files.push(file);
            }
        }
    }
    files
}

/// The header of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    pub(crate) old_mode: Option<String>,
    pub(crate) new_mode: Option<String>,
    /// The object ids of the content before and after, possibly abbreviated.
    pub(crate) ids: Option<(String, String)>,
    /// "Binary files differ": the content is not in the diff.
    pub(crate) lacks_content: bool,
    pub(crate) has_hunks: bool,
    pub(crate) is_new: bool,
    pub(crate) is_deleted: bool,
    pub(crate) renamed_from: Option<RepoPath>,
    pub(crate) copied_from: Option<RepoPath>,
    has_binary_patch: bool,
    /// After a rename or copy.
    moved_to: Option<RepoPath>,
    /// From the lines with `---` and `+++`, without the prefix of git; `None` for `/dev/null`.
    names: [Option<RepoPath>; 2],
    /// From the first line of the header, if both names there are the same.
    common_name: Option<RepoPath>,
}

/// The part of a diff that concerns one file, as found in the text.
#[derive(Debug)]
pub(crate) struct DiffPart<'a> {
    pub(crate) headers: Headers,
    pub(crate) range: Range<usize>,
    hunks: Vec<DiffHunk<'a>>,
    /// The header is not over yet.
    in_header: bool,
    /// A header that git wrote, which may precede the lines with the file names.
    expects_names: bool,
}

impl<'a> DiffPart<'a> {
    fn starting_at(start: usize, expects_names: bool) -> DiffPart<'a> {
        let headers = Headers::default();
        DiffPart { headers, range: start..start, hunks: Vec::new(), in_header: true, expects_names }
    }

    fn into_file(self, diff: &'a [u8]) -> FileDiff<'a> {
        let headers = self.headers;
        let kind = match headers.renamed_from {
            Some(from) => ChangeKind::Renamed { from },
            None if headers.is_new || headers.copied_from.is_some() => ChangeKind::Added,
            None if headers.is_deleted => ChangeKind::Deleted,
            None => ChangeKind::Modified,
        };
        let [old_name, new_name] = headers.names;
        let path = headers.moved_to.or(new_name).or(old_name).or(headers.common_name);
        FileDiff {
            path: path.unwrap_or_default(),
            kind,
            old_mode: headers.old_mode,
            new_mode: headers.new_mode,
            is_binary: headers.lacks_content || headers.has_binary_patch,
            hunks: self.hunks,
            bytes: &diff[self.range],
        }
    }
}

/// Splits a diff into its files.
pub(crate) fn split_parts(diff: &[u8]) -> Vec<DiffPart<'_>> {
    let mut parts: Vec<DiffPart<'_>> = Vec::new();
    let mut missing = MissingLines::default();
    let mut at = 0;
    while at < diff.len() {
        let rest = &diff[at..];
        let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        let start = at;
        at += length;
        let line = trim_line_break(&rest[..length]);
        if missing.take(line) {
            let hunk = parts.last_mut().and_then(|part| part.hunks.last_mut());
            hunk.into_iter().for_each(|hunk| hunk.lines.push(line));
            continue;
        }
        let names_are_expected = parts.last().is_some_and(|part| part.expects_names);
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            let mut part = DiffPart::starting_at(start, true);
            part.headers.common_name = common_name(names);
            parts.push(part);
        } else if are_names(rest) && !names_are_expected {
            parts.push(DiffPart::starting_at(start, false));
        }
        let Some(part) = parts.last_mut() else { continue };
        if let Some(hunk) = DiffHunk::parse(line) {
            missing = MissingLines { old: hunk.old_lines, new: hunk.new_lines };
            part.hunks.push(hunk);
            part.headers.has_hunks = true;
            part.in_header = false;
        } else if part.in_header {
            part.in_header = part.headers.read(line);
        } else if let (true, Some(hunk)) = (line.starts_with(b"\\ "), part.hunks.last_mut()) {
            hunk.lines.push(line);
        }
        part.expects_names &= part.in_header && !line.starts_with(b"--- ");
    }
    let ends: Vec<usize> = parts.iter().skip(1).map(|part| part.range.start).chain([diff.len()]).collect();
    for (part, end) in parts.iter_mut().zip(ends) {
        part.range.end = end;
    }
    parts
}

/// Whether the next lines name the two files of a diff and start a hunk.
fn are_names(rest: &[u8]) -> bool {
    let mut lines = rest.split(|byte| *byte == b'\n');
    ["--- ", "+++ ", "@@ -"]
        .into_iter()
        .all(|prefix| lines.next().is_some_and(|line| line.starts_with(prefix.as_bytes())))
}

impl Headers {
    /// Reads one line of the header; false at its end.
    fn read(&mut self, line: &[u8]) -> bool {
        let text = |prefix: &str| {
            let rest = line.strip_prefix(prefix.as_bytes())?;
            Some(String::from_utf8_lossy(rest).into_owned())
        };
        if let Some(mode) = text("old mode ") {
            self.old_mode = Some(mode);
        } else if let Some(mode) = text("new mode ") {
            self.new_mode = Some(mode);
        } else if let Some(mode) = text("new file mode ") {
            (self.is_new, self.new_mode) = (true, Some(mode));
        } else if let Some(mode) = text("deleted file mode ") {
            (self.is_deleted, self.old_mode) = (true, Some(mode));
        } else if let Some(index) = text("index ") {
            let (ids, mode) =
                index.split_once(' ').map_or((index.as_str(), None), |(ids, mode)| (ids, Some(mode)));
            self.ids = ids.split_once("..").map(|(old, new)| (old.to_owned(), new.to_owned()));
            if let (Some(mode), None) = (mode, &self.old_mode) {
                (self.old_mode, self.new_mode) = (Some(mode.to_owned()), Some(mode.to_owned()));
            }
        } else {
            return self.read_name(line);
        }
        true
    }

    /// Reads a line that names a file, or the last line of a header; false at its end.
    fn read_name(&mut self, line: &[u8]) -> bool {
        if let Some(name) = line.strip_prefix(b"rename from ") {
            self.renamed_from = Some(unquote(name));
        } else if let Some(name) = line.strip_prefix(b"copy from ") {
            self.copied_from = Some(unquote(name));
        } else if let Some(name) = line.strip_prefix(b"rename to ").or(line.strip_prefix(b"copy to ")) {
            self.moved_to = Some(unquote(name));
        } else if let Some(name) = line.strip_prefix(b"--- ") {
            self.names[0] = file_name(name);
            self.is_new |= self.names[0].is_none();
        } else if let Some(name) = line.strip_prefix(b"+++ ") {
            self.names[1] = file_name(name);
            self.is_deleted |= self.names[1].is_none();
        } else if line.starts_with(b"Binary files ") {
            self.lacks_content = true;
            return false;
        } else if line == b"GIT binary patch" {
            self.has_binary_patch = true;
            return false;
        }
        true
    }
}

/// The name behind `---` or `+++`; `None` for no file. A tab ends a name that has spaces.
fn file_name(name: &[u8]) -> Option<RepoPath> {
    let name = match name.first() {
        Some(b'"') => name.trim_ascii_end(),
        _ => name.split(|byte| *byte == b'\t').next().unwrap_or_default(),
    };
    (name != b"/dev/null").then(|| without_prefix(unquote(name)))
}

/// The name in `a/name b/name`, if both are the same.
fn common_name(names: &[u8]) -> Option<RepoPath> {
    let middle = names.len() / 2;
    let (old, new) = (names.get(..middle)?, names.get(middle + 1..)?);
    let (old, new) = (without_prefix(unquote(old)), without_prefix(unquote(new)));
    (names.get(middle) == Some(&b' ') && old == new).then_some(new)
}

/// Removes the `a/` or `b/` that git puts before a name.
fn without_prefix(name: RepoPath) -> RepoPath {
    match name.as_slice() {
        [b'a' | b'b', b'/', name @ ..] => name.to_vec(),
        _ => name,
    }
}

impl<'a> DiffHunk<'a> {
    /// Parses `@@ -start[,lines] +start[,lines] @@ header`.
    fn parse(line: &'a [u8]) -> Option<DiffHunk<'a>> {
        let ranges = line.strip_prefix(b"@@ -")?;
        let end = ranges.windows(3).position(|bytes| bytes == b" @@")?;
        let (old, new) = str::from_utf8(&ranges[..end]).ok()?.split_once(" +")?;
        let header = &ranges[end + 3..];
        let range = |text: &str| -> Option<(u64, u64)> {
            let (start, lines) = text.split_once(',').unwrap_or((text, "1"));
            Some((start.parse().ok()?, lines.parse().ok()?))
        };
        let ((old_start, old_lines), (new_start, new_lines)) = (range(old)?, range(new)?);
        let header = header.strip_prefix(b" ").unwrap_or(header);
        Some(DiffHunk { old_start, old_lines, new_start, new_lines, header, lines: Vec::new() })
    }
}

/// The lines of a hunk that are still to come.
#[derive(Debug, Default)]
struct MissingLines {
    old: u64,
    new: u64,
}

impl MissingLines {
    /// Counts the line if it belongs to the hunk.
    fn take(&mut self, line: &[u8]) -> bool {
        let (old, new) = match line.first() {
            _ if self.old == 0 && self.new == 0 => return false,
            Some(b' ') | None => (1, 1),
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b'\\') => (0, 0),
            _ => {
                *self = MissingLines::default();
                return false;
            }
        };
        self.old = self.old.saturating_sub(old);
        self.new = self.new.saturating_sub(new);
        true
    }
}

fn trim_line_break(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// Decodes a name as git writes it: plain, or in double quotes with C escapes.
fn unquote(name: &[u8]) -> RepoPath {
    let Some(quoted) = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")) else {
        return name.to_vec();
    };
    let mut plain = Vec::new();
    let mut bytes = quoted.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = if byte == b'\\' { bytes.next() } else { None };
        plain.push(match escaped {
            None => byte,
            Some(b'a') => 7,
            Some(b'b') => 8,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'v') => 11,
            Some(b'f') => 12,
            Some(b'r') => b'\r',
            Some(digit @ b'0'..=b'3') => {
                let mut value = digit - b'0';
                for _ in 0..2 {
                    let next = bytes.next_if(|digit| (b'0'..=b'7').contains(digit));
                    value = next.map_or(value, |digit| (value << 3) | (digit - b'0'));
                }
                value
            }
            Some(other) => other,
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_paths_kinds_and_hunks() {
        let diff = b"diff --git a/a b b/a b\nold mode 100644\nnew mode 100755\n\
                     diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nnew file mode 100644\nindex 0..1\n\
                     diff --git a/pic b/pic\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZQz\n\n\
                     diff --git a/old b/new\nsimilarity index 90%\nrename from old\nrename to new\n--- a/old\n+++ b/new\n\
                     @@ -3,2 +3 @@ fn main() {\n \n-a\n\\ No newline at end of file\n@@ -9 +8,2 @@\n-a\n+b\n+c\n\
                     diff --git a/l b/l\ndeleted file mode 100644\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n--- x\n\
                     diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+t\n\
                     \\ No newline at end of file\n\
                     diff --git a/g b/g\ndeleted file mode 100644\nindex 1..0\n";
        let files = parse_unified_diff(diff);
        let paths: Vec<_> = files.iter().map(|file| String::from_utf8_lossy(&file.path)).collect();
        assert_eq!(paths, ["a b", "ä", "pic", "new", "l", "g"]);
        let renamed = ChangeKind::Renamed { from: b"old".to_vec() };
        use ChangeKind::{Added, Deleted, Modified};
        let kinds: Vec<_> = files.iter().map(|file| file.kind.clone()).collect();
        assert_eq!(kinds, [Modified, Added, Modified, renamed, Modified, Deleted]);
        assert_eq!(files[0].new_mode.as_deref(), Some("100755"));
        assert!(files[2].is_binary && !files[3].is_binary);
        let [first, second] = &files[3].hunks[..] else { panic!("{:?}", files[3].hunks) };
        assert_eq!((first.old_start, first.old_lines, first.new_start, first.new_lines), (3, 2, 3, 1));
        assert_eq!((first.header, second.header), (&b"fn main() {"[..], &b""[..]));
        assert_eq!(first.lines, [&b" "[..], b"-a", b"\\ No newline at end of file"]);
        assert_eq!(files[3].line_counts(), (2, 2));
        assert_eq!(files[4].hunks.iter().map(|hunk| hunk.lines.len()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(
            (files[4].old_mode.as_deref(), files[4].new_mode.as_deref()),
            (Some("100644"), Some("120000"))
        );
        let all: Vec<u8> = files.iter().flat_map(|file| file.bytes).copied().collect();
        assert_eq!(all, diff);
    }
}
