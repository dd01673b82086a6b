//! Reads unified diffs: the files of a diff, their headers and their hunks. Pure.
//!
//! Lines of a hunk are counted, so file content is never mistaken for a header. Any bytes are accepted: what
//! is not part of a diff is skipped. Whether a diff can be applied and what it makes of a file is decided by
//! git, never here.

use std::fmt;

use super::raw::ChangeKind;
use crate::records::{GITLINK, RepoPath};

const INCOMPLETE: &str = "lines are missing";

/// The part of a diff that concerns one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    pub(crate) copied_from: Option<RepoPath>,
    /// The object ids of the content before and after, possibly abbreviated.
    pub(crate) ids: Option<(String, String)>,
    /// "Binary files differ": the content is not in the diff.
    pub(crate) lacks_content: bool,
    /// Where it starts in the diff.
    start: usize,
    /// Why it is no valid diff.
    problem: Option<&'static str>,
}

/// Where a hunk changes lines: in the version that the diff is based on, and in the one that the task
/// produced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct HunkRange {
    pub old_start: u64,
    pub old_lines: u64,
    pub new_start: u64,
    pub new_lines: u64,
}

impl fmt::Display for HunkRange {
    /// As in a diff.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HunkRange { old_start, old_lines, new_start, new_lines } = self;
        write!(formatter, "@@ -{old_start},{old_lines} +{new_start},{new_lines} @@")
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffHunk<'a> {
    pub range: HunkRange,
    /// What follows the ranges, usually the enclosing function.
    pub header: &'a [u8],
    /// The lines with their sign and without their line break.
    pub lines: Vec<&'a [u8]>,
}

/// The text is not a unified diff.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a unified diff: {problem}")]
pub struct NotADiff {
    pub problem: String,
}

impl FileDiff<'_> {
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

    /// The path that the content comes from.
    pub(crate) fn source(&self) -> Option<&RepoPath> {
        match &self.kind {
            ChangeKind::Added => self.copied_from.as_ref(),
            ChangeKind::Modified | ChangeKind::Deleted => Some(&self.path),
            ChangeKind::Renamed { from } => Some(from),
        }
    }

    /// The path that has new content after the change.
    pub(crate) fn target(&self) -> Option<&RepoPath> {
        (self.kind != ChangeKind::Deleted).then_some(&self.path)
    }

    /// The path that no longer has its old content after the change.
    pub(crate) fn consumed(&self) -> Option<&RepoPath> {
        self.source().filter(|_| self.kind != ChangeKind::Added)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &RepoPath> {
        self.source().into_iter().chain(self.target())
    }

    pub(crate) fn is_submodule(&self) -> bool {
        [&self.old_mode, &self.new_mode].into_iter().flatten().any(|mode| mode == GITLINK)
    }
}

/// The files of a diff, in its order. A file that becomes a symbolic link, or the reverse, is one change.
pub fn parse_unified_diff(diff: &[u8]) -> Vec<FileDiff<'_>> {
    join_replacements(diff, split_files(diff))
}

/// Like [`parse_unified_diff`], for a text that must be a complete diff and nothing else.
pub fn parse_complete_diff(diff: &[u8]) -> Result<Vec<FileDiff<'_>>, NotADiff> {
    let files = parse_unified_diff(diff);
    let refuse = |problem: String| Err(NotADiff { problem });
    match files.iter().find_map(|file| Some((file.problem?, &file.path))) {
        Some((problem, path)) => refuse(format!("{problem} in {:?}", String::from_utf8_lossy(path))),
        None if files.is_empty() => refuse("it names no file".to_owned()),
        None => Ok(files),
    }
}

/// git prints a replaced file as deleted and created, one after the other. Here it is one change.
pub(crate) fn join_replacements<'a>(diff: &'a [u8], files: Vec<FileDiff<'a>>) -> Vec<FileDiff<'a>> {
    let mut joined: Vec<FileDiff<'a>> = Vec::new();
    for file in files {
        match joined.last_mut() {
            Some(before)
                if before.kind == ChangeKind::Deleted
                    && (file.kind == ChangeKind::Added && file.copied_from.is_none())
                    && before.path == file.path =>
            {
                before.bytes = &diff[before.start..file.start + file.bytes.len()];
                before.kind = ChangeKind::Modified;
                before.new_mode = file.new_mode;
                before.is_binary |= file.is_binary;
                before.lacks_content |= file.lacks_content;
                before.hunks.extend(file.hunks);
                before.problem = before.problem.or(file.problem);
                if let (Some(ids), Some((_, new))) = (&mut before.ids, file.ids) {
                    ids.1 = new;
                }
            }
            _ => joined.push(file),
        }
    }
    joined
}

/// A file whose lines are being read, the names in its header, and how far that was read.
#[derive(Debug, Default)]
struct OpenFile<'a> {
    file: FileDiff<'a>,
    is_new: bool,
    is_deleted: bool,
    renamed_from: Option<RepoPath>,
    /// After a rename or copy.
    moved_to: Option<RepoPath>,
    /// From the lines with `---` and `+++`, without the prefix of git; `None` for `/dev/null`.
    names: [Option<RepoPath>; 2],
    /// From the first line of the header, if both names there are the same.
    common_name: Option<RepoPath>,
    /// git wrote the header, so lines with the file names may follow.
    expects_names: bool,
    is_header_over: bool,
}

impl<'a> OpenFile<'a> {
    fn close(self, diff: &'a [u8], end: usize) -> FileDiff<'a> {
        let mut file = self.file;
        file.bytes = &diff[file.start..end];
        let has_names = self.names.iter().any(Option::is_some);
        file.kind = match self.renamed_from {
            Some(from) => ChangeKind::Renamed { from },
            None if self.is_new || file.copied_from.is_some() => ChangeKind::Added,
            None if self.is_deleted => ChangeKind::Deleted,
            None => ChangeKind::Modified,
        };
        let is_same = file.kind == ChangeKind::Modified && file.old_mode == file.new_mode;
        if file.hunks.is_empty() && !file.is_binary && (has_names || is_same) {
            file.problem = Some("it changes nothing");
        }
        let [old_name, new_name] = self.names;
        let path = self.moved_to.or(new_name).or(old_name).or(self.common_name);
        FileDiff { path: path.unwrap_or_default(), ..file }
    }

    fn read_header(&mut self, line: &[u8]) {
        let text = |prefix: &str| {
            let rest = line.strip_prefix(prefix.as_bytes())?;
            Some(String::from_utf8_lossy(rest).into_owned())
        };
        let file = &mut self.file;
        if let Some(mode) = text("old mode ") {
            file.old_mode = Some(mode);
        } else if let Some(mode) = text("new mode ") {
            file.new_mode = Some(mode);
        } else if let Some(mode) = text("new file mode ") {
            (self.is_new, file.new_mode) = (true, Some(mode));
        } else if let Some(mode) = text("deleted file mode ") {
            (self.is_deleted, file.old_mode) = (true, Some(mode));
        } else if let Some(index) = text("index ") {
            let (ids, mode) =
                index.split_once(' ').map_or((index.as_str(), None), |(ids, mode)| (ids, Some(mode)));
            file.ids = ids.split_once("..").map(|(old, new)| (old.to_owned(), new.to_owned()));
            if let (Some(mode), None) = (mode, &file.old_mode) {
                (file.old_mode, file.new_mode) = (Some(mode.to_owned()), Some(mode.to_owned()));
            }
        } else if let Some(name) = line.strip_prefix(b"copy from ") {
            file.copied_from = Some(unquote(name));
        } else if line.starts_with(b"Binary files ") {
            (file.is_binary, file.lacks_content, self.is_header_over) = (true, true, true);
        } else if line == b"GIT binary patch" {
            (file.is_binary, self.is_header_over) = (true, true);
        } else if let Some(name) = line.strip_prefix(b"rename from ") {
            self.renamed_from = Some(unquote(name));
        } else if let Some(name) = line.strip_prefix(b"rename to ").or(line.strip_prefix(b"copy to ")) {
            self.moved_to = Some(unquote(name));
        } else if let Some(name) = line.strip_prefix(b"--- ") {
            self.names[0] = file_name(name);
            self.is_new |= self.names[0].is_none();
        } else if let Some(name) = line.strip_prefix(b"+++ ") {
            self.names[1] = file_name(name);
            self.is_deleted |= self.names[1].is_none();
        }
    }
}

pub(crate) fn split_files(diff: &[u8]) -> Vec<FileDiff<'_>> {
    let mut files: Vec<OpenFile<'_>> = Vec::new();
    let mut missing = (0, 0);
    let mut end = 0;
    for line in diff.split_inclusive(|byte| *byte == b'\n') {
        let (start, rest) = (end, &diff[end..]);
        end += line.len();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if take_line(&mut missing, line) {
            let hunk = files.last_mut().and_then(|open| open.file.hunks.last_mut());
            hunk.into_iter().for_each(|hunk| hunk.lines.push(line));
            continue;
        }
        if let Some(open) = files.last_mut().filter(|_| missing != (0, 0)) {
            open.file.problem = Some(INCOMPLETE);
        }
        missing = (0, 0);
        let names_are_expected = files.last().is_some_and(|open| open.expects_names);
        let names = line.strip_prefix(b"diff --git ");
        if names.is_some() || (are_names(rest) && !names_are_expected) {
            let file = FileDiff { start, ..FileDiff::default() };
            let (common_name, expects_names) = (names.and_then(common_name), names.is_some());
            files.push(OpenFile { file, common_name, expects_names, ..OpenFile::default() });
        }
        let Some(open) = files.last_mut() else { continue };
        if let Some(hunk) = DiffHunk::parse(line) {
            missing = (hunk.range.old_lines, hunk.range.new_lines);
            open.file.hunks.push(hunk);
            open.is_header_over = true;
        } else if !open.is_header_over {
            open.read_header(line);
        } else if let (true, Some(hunk)) = (line.starts_with(b"\\ "), open.file.hunks.last_mut()) {
            hunk.lines.push(line);
        }
        open.expects_names &= !open.is_header_over && !line.starts_with(b"--- ");
    }
    if let Some(open) = files.last_mut().filter(|_| missing != (0, 0)) {
        open.file.problem = Some(INCOMPLETE);
    }
    let ends: Vec<usize> = files.iter().skip(1).map(|open| open.file.start).chain([diff.len()]).collect();
    files.into_iter().zip(ends).map(|(open, end)| open.close(diff, end)).collect()
}

/// Whether the next lines name the two files of a diff and start a hunk.
fn are_names(rest: &[u8]) -> bool {
    let mut lines = rest.split(|byte| *byte == b'\n');
    ["--- ", "+++ ", "@@ -"]
        .into_iter()
        .all(|prefix| lines.next().is_some_and(|line| line.starts_with(prefix.as_bytes())))
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
        let parse = |text: &str| -> Option<(u64, u64)> {
            let (start, lines) = text.split_once(',').unwrap_or((text, "1"));
            Some((start.parse().ok()?, lines.parse().ok()?))
        };
        let ((old_start, old_lines), (new_start, new_lines)) = (parse(old)?, parse(new)?);
        let range = HunkRange { old_start, old_lines, new_start, new_lines };
        Some(DiffHunk { range, header: header.strip_prefix(b" ").unwrap_or(header), lines: Vec::new() })
    }
}

/// Counts the line if it belongs to a hunk, of which these numbers of old and new lines are still to come.
fn take_line(missing: &mut (u64, u64), line: &[u8]) -> bool {
    let (old, new) = match line.first() {
        _ if *missing == (0, 0) => return false,
        Some(b' ') | None => (1, 1),
        Some(b'-') => (1, 0),
        Some(b'+') => (0, 1),
        Some(b'\\') => (0, 0),
        _ => return false,
    };
    *missing = (missing.0.saturating_sub(old), missing.1.saturating_sub(new));
    true
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
    use crate::records::display_path;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

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
        assert_eq!(first.range, HunkRange { old_start: 3, old_lines: 2, new_start: 3, new_lines: 1 });
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

    proptest! {
        /// Pieces of diffs in any order are a diff or an error; nothing panics.
        #[test]
        fn any_text_is_parsed_or_refused(lines in vec(select(&PIECES[..]), 0..30), noise in ".{0,20}") {
            let text = format!("{}{noise}", lines.join("\n"));
            if let Ok(files) = parse_complete_diff(text.as_bytes()) {
                prop_assert!(!files.is_empty());
                let counts = files.iter().map(FileDiff::line_counts);
                let changed = counts.map(|(added, removed)| added + removed).sum::<u64>();
                prop_assert!(changed <= text.lines().count() as u64);
            }
        }
    }

    const PIECES: [&str; 22] = [
        "diff --git a/x b/x",
        "diff --git a/x y b/x y",
        "diff --git \"a/\\303\" \"b/\\303\"",
        "diff --git ü",
        "--- a/x",
        "+++ b/x",
        "--- /dev/null",
        "+++ /dev/null",
        "@@ -1 +1 @@",
        "@@ -0,0 +1,2 @@ fn",
        "@@ -9999999999999999999999 +1 @@",
        "-old",
        "+new",
        " same",
        "\\ No newline at end of file",
        "rename from x",
        "rename to \"y",
        "new file mode 100644",
        "deleted file mode 7",
        "Binary files a/x and b/x differ",
        "GIT binary patch",
        "literal 3",
    ];

    /// Path, kind, whether it is binary, lines added, lines removed.
    type Listed = (String, ChangeKind, bool, u64, u64);

    fn file(path: &str, kind: ChangeKind, added: u64, removed: u64) -> Listed {
        (path.to_owned(), kind, false, added, removed)
    }

    fn binary(path: &str, kind: ChangeKind) -> Listed {
        (path.to_owned(), kind, true, 0, 0)
    }

    fn renamed(from: &str) -> ChangeKind {
        ChangeKind::Renamed { from: from.into() }
    }

    fn parse(diff: &str) -> Result<Vec<Listed>, NotADiff> {
        let listed = |file: &FileDiff<'_>| {
            let (added, removed) = file.line_counts();
            (display_path(&file.path), file.kind.clone(), file.is_binary, added, removed)
        };
        Ok(parse_complete_diff(diff.as_bytes())?.iter().map(listed).collect())
    }

    /// Printed by git 2.47, for one change of each kind; with and without `--binary`.
    #[test]
    fn a_diff_of_git_is_read() {
        use ChangeKind::{Added, Deleted, Modified};
        let expected = [
            file("dashes.sql", Modified, 1, 2),
            binary("data.bin", Modified),
            file("deleted.txt", Deleted, 0, 2),
            file("dir-moved.txt", renamed("moved.txt"), 1, 0),
            file("empty", Added, 0, 0),
            file("latin\u{fffd}.txt", Modified, 1, 1),
            file("link", Modified, 1, 1),
            binary("new.bin", Added),
            file("no-newline.txt", Modified, 1, 1),
            binary("old.bin", Deleted),
            file("renamed-new.txt", renamed("renamed-old.txt"), 0, 0),
            file("script.sh", Modified, 0, 0),
            file("sub/new.txt", Added, 2, 0),
            file("with space.txt", Modified, 1, 0),
            file("ünï\"q.txt", Modified, 1, 1),
        ];
        assert_eq!(parse(include_str!("../../recordings/git.diff")).unwrap(), expected);
        assert_eq!(parse(include_str!("../../recordings/git-binary.diff")).unwrap(), expected);
    }

    #[test]
    fn a_diff_of_another_program_is_read() {
        let text =
            "--- old.txt\t2026-11-16 00:00:00\n+++ old.txt\t2026-11-16 00:01:00\n@@ -1 +1,2 @@\n-a\n+b\n+c\n";
        assert_eq!(parse(text).unwrap(), [file("old.txt", ChangeKind::Modified, 2, 1)]);
    }

    #[test]
    fn what_is_not_a_diff_is_an_error() {
        let recorded = include_str!("../../recordings/git.diff");
        let others = [
            "",
            "no diff\n",
            "<html>a gateway</html>",
            "*** Begin Patch\n*** Update File: a\n*** End Patch\n",
            "--- a\n",
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-only half of it\n",
            "diff --git\n",
            "diff --git a/x b/y\n",
            &recorded[..recorded.find("-two").unwrap()],
        ];
        for text in others {
            assert!(parse(text).is_err(), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn content_that_looks_like_a_header_is_content() {
        let diff = b"Subject: x\n\ndiff --git a/a b/a\nindex 1234567..89abcde 100755\n--- a/a\n+++ b/a\n\
                     @@ -1,3 +1,3 @@\n one\n--- a/b\n+++ b/b\n two\n@@ -9 +9 @@ fn\n-x\n+y\n-- \n2.47\n\
                     diff --git a/old b/new\nsimilarity index 90%\nrename from \"o\\303\\244\\tld\"\nrename to new\n\
                     --- a/old\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n\
                     --- a/plain\n+++ b/plain\n@@ -0,0 +1 @@\n+x\n";
        let sections = parse_unified_diff(diff);
        assert_eq!(sections.len(), 3);
        assert_eq!(sections[0].ids, Some(("1234567".to_owned(), "89abcde".to_owned())));
        assert_eq!(sections[0].old_mode.as_deref(), Some("100755"));
        assert_eq!(sections[1].kind, renamed("oä\tld"));
        assert_eq!((&sections[2].kind, sections[2].bytes.len()), (&ChangeKind::Modified, 41));
    }

    #[test]
    fn a_replaced_file_is_one_change() {
        let diff = b"diff --git a/l b/l\ndeleted file mode 100644\nindex 12..00\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\
                     diff --git a/l b/l\nnew file mode 120000\nindex 00..34\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a\n";
        let sections = parse_unified_diff(diff);
        assert_eq!(
            (sections.len(), &sections[0].kind, sections[0].bytes),
            (1, &ChangeKind::Modified, &diff[..])
        );
        assert_eq!(sections[0].new_mode.as_deref(), Some("120000"));
        assert_eq!(sections[0].ids, Some(("12".to_owned(), "34".to_owned())));
    }
}
