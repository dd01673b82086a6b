//! Splits a diff into its files and reads their headers.
//!
//! git itself parses the diff first and lists one path per file, so only boundaries and header lines are read here.
//! Lines of a hunk are counted, so file content is never mistaken for a header. Content is applied by git, not here.

use std::collections::BTreeMap;

use super::report::ApplyError;
use crate::listing::{GITLINK, RepoPath};

/// What a diff does with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    Modify,
    Create,
    Delete,
    Rename { from: RepoPath },
    Copy { from: RepoPath },
}

/// The part of a diff that concerns one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    /// The path after the change; of a deleted file, the path before.
    pub(crate) path: RepoPath,
    pub(crate) edit: Edit,
    pub(crate) headers: Headers,
    /// A diff of this file alone.
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    pub(crate) old_mode: Option<String>,
    pub(crate) new_mode: Option<String>,
    /// The object ids of the content before and after, possibly abbreviated.
    pub(crate) ids: Option<(String, String)>,
    /// "Binary files differ": the content is not in the diff.
    pub(crate) lacks_content: bool,
    pub(crate) has_hunks: bool,
    is_new: bool,
    is_deleted: bool,
    renamed_from: Option<RepoPath>,
    copied_from: Option<RepoPath>,
}

impl Section {
    /// The path before the change.
    pub(crate) fn source(&self) -> Option<&RepoPath> {
        match &self.edit {
            Edit::Create => None,
            Edit::Modify | Edit::Delete => Some(&self.path),
            Edit::Rename { from } | Edit::Copy { from } => Some(from),
        }
    }

    /// The path that has new content after the change.
    pub(crate) fn target(&self) -> Option<&RepoPath> {
        (self.edit != Edit::Delete).then_some(&self.path)
    }

    /// The path that no longer has its old content after the change.
    pub(crate) fn consumed(&self) -> Option<&RepoPath> {
        self.source().filter(|_| !matches!(self.edit, Edit::Copy { .. }))
    }

    pub(crate) fn is_submodule(&self) -> bool {
        [&self.headers.old_mode, &self.headers.new_mode].into_iter().flatten().any(|mode| mode == GITLINK)
    }
}

/// Splits a diff. `paths` are the paths that git lists for it, one per file.
pub(crate) fn split(diff: &[u8], paths: Vec<RepoPath>) -> Result<Vec<Section>, ApplyError> {
    let parts = split_parts(diff);
    if parts.len() != paths.len() {
        let problem = format!("git finds {} files in it, and it has headers of {}", paths.len(), parts.len());
        return Err(ApplyError::MalformedDiff { problem });
    }
    let sections = parts.into_iter().zip(paths).map(|((headers, bytes), path)| {
        let edit = match &headers {
            Headers { renamed_from: Some(from), .. } => Edit::Rename { from: from.clone() },
            Headers { copied_from: Some(from), .. } => Edit::Copy { from: from.clone() },
            Headers { is_new: true, .. } => Edit::Create,
            Headers { is_deleted: true, .. } => Edit::Delete,
            _ => Edit::Modify,
        };
        Section { path, edit, headers, bytes: bytes.to_vec() }
    });
    Ok(join_replacements(sections.collect()))
}

/// git shows a file that becomes a symbolic link, or the reverse, as deleted and created. Here it is one change.
fn join_replacements(sections: Vec<Section>) -> Vec<Section> {
    let mut joined: Vec<Section> = Vec::new();
    let mut deleted: BTreeMap<RepoPath, usize> = BTreeMap::new();
    for section in sections {
        match (&section.edit, deleted.remove(&section.path)) {
            (Edit::Create, Some(at)) => {
                let before = &mut joined[at];
                before.edit = Edit::Modify;
                before.headers.new_mode = section.headers.new_mode;
                before.headers.lacks_content |= section.headers.lacks_content;
                if let (Some(ids), Some((_, new))) = (&mut before.headers.ids, section.headers.ids) {
                    ids.1 = new;
                }
                before.bytes.extend(section.bytes);
                continue;
            }
            (Edit::Delete, None) => drop(deleted.insert(section.path.clone(), joined.len())),
            _ => {}
        }
        joined.push(section);
    }
    joined
}

/// A part of the diff that is being read.
struct Part {
    start: usize,
    headers: Headers,
    /// The header is not over yet.
    in_header: bool,
    /// A header that git wrote, which may precede the lines with the file names.
    expects_names: bool,
}

/// Splits a diff into the headers and bytes of each file.
fn split_parts(diff: &[u8]) -> Vec<(Headers, &[u8])> {
    let mut parts: Vec<Part> = Vec::new();
    let mut hunk = Hunk::default();
    let mut at = 0;
    while at < diff.len() {
        let rest = &diff[at..];
        let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        let start = at;
        at += length;
        let line = &rest[..length];
        if hunk.takes(line) {
            continue;
        }
        let names_are_expected = parts.last().is_some_and(|part| part.expects_names);
        if line.starts_with(b"diff --git ") {
            parts.push(Part { start, headers: Headers::default(), in_header: true, expects_names: true });
        } else if are_names(rest) && !names_are_expected {
            parts.push(Part { start, headers: Headers::default(), in_header: true, expects_names: false });
        }
        let Some(part) = parts.last_mut() else { continue };
        if let Some(found) = Hunk::parse(line) {
            hunk = found;
            part.headers.has_hunks = true;
            part.in_header = false;
        } else if part.in_header {
            part.in_header = part.headers.read(trim_line_break(line));
        }
        part.expects_names &= part.in_header && !line.starts_with(b"--- ");
    }
    let ends: Vec<usize> = parts.iter().skip(1).map(|part| part.start).chain([diff.len()]).collect();
    parts.into_iter().zip(ends).map(|(part, end)| (part.headers, &diff[part.start..end])).collect()
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
        } else if let Some(name) = line.strip_prefix(b"rename from ") {
            self.renamed_from = Some(unquote(name));
        } else if let Some(name) = line.strip_prefix(b"copy from ") {
            self.copied_from = Some(unquote(name));
        } else if line.starts_with(b"--- /dev/null") {
            self.is_new = true;
        } else if line.starts_with(b"+++ /dev/null") {
            self.is_deleted = true;
        } else if line.starts_with(b"Binary files ") {
            self.lacks_content = true;
            return false;
        }
        line != b"GIT binary patch"
    }
}

/// The lines of a hunk that are still to come.
#[derive(Debug, Default)]
struct Hunk {
    old_lines: u64,
    new_lines: u64,
}

impl Hunk {
    /// Parses `@@ -start[,lines] +start[,lines] @@`.
    fn parse(line: &[u8]) -> Option<Hunk> {
        let line = String::from_utf8_lossy(line);
        let mut fields = line.strip_prefix("@@ -")?.split(' ');
        let count = |range: &str| match range.split_once(',') {
            Some((_, lines)) => lines.parse().ok(),
            None => Some(1),
        };
        let old_lines = count(fields.next()?)?;
        let new_lines = count(fields.next()?.strip_prefix('+')?)?;
        (fields.next()?.trim_end() == "@@").then_some(Hunk { old_lines, new_lines })
    }

    /// Counts the line if it belongs to the hunk.
    fn takes(&mut self, line: &[u8]) -> bool {
        let (old, new) = match line.first() {
            _ if self.old_lines == 0 && self.new_lines == 0 => return false,
            Some(b' ' | b'\n') => (1, 1),
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b'\\') => (0, 0),
            _ => {
                *self = Hunk::default();
                return false;
            }
        };
        self.old_lines = self.old_lines.saturating_sub(old);
        self.new_lines = self.new_lines.saturating_sub(new);
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

    fn paths(names: &[&str]) -> Vec<RepoPath> {
        names.iter().map(|name| name.as_bytes().to_vec()).collect()
    }

    #[test]
    fn content_that_looks_like_a_header_is_content() {
        let diff = b"Subject: x\n\ndiff --git a/a b/a\nindex 1234567..89abcde 100755\n--- a/a\n+++ b/a\n\
                     @@ -1,3 +1,3 @@\n one\n--- a/b\n+++ b/b\n two\n@@ -9 +9 @@ fn\n-x\n+y\n-- \n2.47\n\
                     diff --git a/old b/new\nsimilarity index 90%\nrename from \"o\\303\\244\\tld\"\nrename to new\n\
                     --- a/old\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n\
                     --- a/plain\n+++ b/plain\n@@ -0,0 +1 @@\n+x\n";
        let sections = split(diff, paths(&["a", "new", "plain"])).unwrap();
        assert_eq!(sections.len(), 3);
        assert_eq!(sections[0].headers.ids, Some(("1234567".to_owned(), "89abcde".to_owned())));
        assert_eq!(sections[0].headers.old_mode.as_deref(), Some("100755"));
        assert_eq!(sections[1].edit, Edit::Rename { from: "oä\tld".as_bytes().to_vec() });
        assert_eq!((&sections[2].edit, sections[2].bytes.len()), (&Edit::Modify, 41));
        assert!(matches!(split(diff, paths(&["a"])), Err(ApplyError::MalformedDiff { .. })));
    }

    #[test]
    fn a_replaced_file_is_one_change() {
        let diff = b"diff --git a/l b/l\ndeleted file mode 100644\nindex 12..00\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\
                     diff --git a/l b/l\nnew file mode 120000\nindex 00..34\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a\n";
        let sections = split(diff, paths(&["l", "l"])).unwrap();
        assert_eq!(
            (sections.len(), &sections[0].edit, sections[0].bytes.as_slice()),
            (1, &Edit::Modify, &diff[..])
        );
        assert_eq!(sections[0].headers.new_mode.as_deref(), Some("120000"));
        assert_eq!(sections[0].headers.ids, Some(("12".to_owned(), "34".to_owned())));
    }
}
