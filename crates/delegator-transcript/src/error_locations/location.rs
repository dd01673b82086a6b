//! What all formats share: a line, a position at its start, the rules for what can be a file name, and the
//! locations found.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Locations stored per command.
const MAX_LOCATIONS: usize = 20;
pub(super) const MAX_MESSAGE_CHARS: usize = 300;
pub(super) const MAX_KIND_CHARS: usize = 120;
/// Longer paths are not recognised.
const MAX_PATH_BYTES: usize = 400;
const MAX_DIGITS: usize = 7;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorLocation {
    /// As printed; an absolute path inside the working directory is made relative to it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1; absent if the command printed none.
    pub column: Option<u32>,
    /// The error message, at most 300 characters.
    pub message: String,
    /// The error code or type: `E0308`, `TypeError`, `TS2322`, `java.lang.NullPointerException`.
    pub kind: Option<String>,
}

/// One line of output, prepared once for all parsers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    /// Without trailing white space.
    pub(super) text: &'t str,
    /// Without leading and trailing white space.
    pub(super) trimmed: &'t str,
    /// `path:line[:column]` at the start of the trimmed line.
    pub(super) position: Option<Position<'t>>,
}

impl<'t> Line<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let text = text.trim_ascii_end();
        let trimmed = text.trim_ascii_start();
        Line { text, trimmed, position: Position::at_start(trimmed) }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.trimmed.is_empty()
    }

    pub(super) fn is_indented(&self) -> bool {
        self.text.len() != self.trimmed.len()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position<'t> {
    pub(super) file: &'t str,
    pub(super) line: u32,
    pub(super) column: Option<u32>,
    /// The text after the position, including the separator.
    pub(super) rest: &'t str,
}

impl<'t> Position<'t> {
    /// Tries only the first colon before a digit, so that the cost is linear in the line.
    pub(super) fn at_start(text: &'t str) -> Option<Self> {
        let head = &text.as_bytes()[..text.len().min(MAX_PATH_BYTES)];
        let is_digit = |at: &usize| text.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit);
        let colon = memchr::memchr_iter(b':', head).find(is_digit)?;
        let file = &text[..colon];
        let (line, rest) = parse_number(&text[colon + 1..])?;
        let second = rest.strip_prefix(':').and_then(parse_number);
        let (column, rest) = match second {
            Some((column, rest)) => (Some(column), rest),
            None => (None, rest),
        };
        let is_delimited = rest.is_empty() || rest.starts_with([':', ' ', ')', ',', '\t']);
        (is_delimited && looks_like_file(file)).then_some(Position { file, line, column, rest })
    }

    /// The text after the position, without the colon.
    pub(super) fn message(&self) -> &'t str {
        self.rest.strip_prefix(':').unwrap_or(self.rest).trim()
    }

    pub(super) fn draft(&self, message: impl Into<Cow<'t, str>>, kind: Option<&'t str>) -> Draft<'t> {
        Draft { file: self.file, line: self.line, column: self.column, message: message.into(), kind }
    }
}

/// A location before its path is made relative and its message is sanitised.
#[derive(Clone, Debug)]
pub(super) struct Draft<'t> {
    pub(super) file: &'t str,
    pub(super) line: u32,
    pub(super) column: Option<u32>,
    pub(super) message: Cow<'t, str>,
    pub(super) kind: Option<&'t str>,
}

#[derive(Debug)]
pub(super) struct FoundLocations<'w> {
    pub(super) workdir: Option<&'w str>,
    pub(super) locations: Vec<ErrorLocation>,
}

impl FoundLocations<'_> {
    pub(super) fn add(&mut self, draft: &Draft<'_>) {
        let file = relative_to_workdir(draft.file, self.workdir);
        let is_same = |known: &ErrorLocation| {
            known.file == file && known.line == draft.line && known.column == draft.column
        };
        if self.is_full() || self.locations.iter().any(is_same) {
            return;
        }
        self.locations.push(ErrorLocation {
            file: file.to_owned(),
            line: draft.line,
            column: draft.column,
            message: sanitize(&draft.message, MAX_MESSAGE_CHARS),
            kind: draft.kind.map(|kind| sanitize(kind, MAX_KIND_CHARS)),
        });
    }

    pub(super) fn is_full(&self) -> bool {
        self.locations.len() >= MAX_LOCATIONS
    }
}

pub(super) trait LineParser<'t> {
    /// Returns whether the line belongs to this format; no other parser gets it then.
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool;

    /// Called at the end of the text and at a gap in it.
    fn finish(&mut self, _found: &mut FoundLocations<'_>) {}
}

/// Splits off a number above 0.
pub(super) fn parse_number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take(MAX_DIGITS + 1).take_while(u8::is_ascii_digit).count();
    if digits > MAX_DIGITS {
        return None;
    }
    let number: u32 = text[..digits].parse().ok()?;
    (number > 0).then_some((number, &text[digits..]))
}

/// Whether this can be a file name: not a time, a URL, or a host with a port.
pub(super) fn looks_like_file(path: &str) -> bool {
    if path.is_empty() || path.len() > MAX_PATH_BYTES {
        return false;
    }
    let bytes = path.as_bytes();
    // A path with a space cannot be distinguished from a word before a path, unless it starts like a path.
    let is_rooted = matches!(bytes[0], b'/' | b'.' | b'\\') || bytes.get(1) == Some(&b':');
    if !is_rooted && memchr::memchr(b' ', bytes).is_some() {
        return false;
    }
    let is_forbidden = |byte: &u8| {
        matches!(byte, 0..=31 | 127 | b'"' | b'\'' | b'`' | b'<' | b'>' | b'|' | b'*' | b'?' | b';' | b'=')
    };
    let has_file_name = is_source_file(path) || (path.contains(['/', '\\']) && has_extension(path));
    has_file_name && !bytes.iter().any(is_forbidden) && !path.contains("://")
}

fn file_name(path: &str) -> &str {
    memchr::memrchr2(b'/', b'\\', path.as_bytes()).map_or(path, |at| &path[at + 1..])
}

fn extension(name: &str) -> Option<&str> {
    memchr::memrchr(b'.', name.as_bytes()).map(|at| &name[at + 1..])
}

fn has_extension(path: &str) -> bool {
    let ending = extension(file_name(path)).unwrap_or_default();
    ending.len() <= 8 && ending.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Whether the extension or name is that of a source file.
pub(super) fn is_source_file(path: &str) -> bool {
    let name = file_name(path);
    match extension(name) {
        Some(ending) => ending.len() <= 8 && SOURCE_EXTENSIONS.binary_search(&ending).is_ok(),
        None => {
            matches!(name, "Makefile" | "makefile" | "GNUmakefile" | "Dockerfile" | "Justfile" | "justfile")
        }
    }
}

/// Sorted for binary search.
const SOURCE_EXTENSIONS: [&str; 86] = [
    "R", "S", "asm", "bash", "bat", "c", "cc", "cjs", "clj", "cljs", "cmake", "cpp", "cs", "css", "cts",
    "cu", "cxx", "d", "dart", "el", "erl", "ex", "exs", "f90", "fs", "go", "gradle", "graphql", "groovy",
    "h", "hh", "hpp", "hrl", "hs", "html", "hxx", "inl", "ipynb", "java", "jl", "js", "json", "jsx", "kt",
    "kts", "less", "lua", "m", "md", "mjs", "mk", "ml", "mli", "mm", "mts", "nim", "nix", "php", "pl", "pm",
    "proto", "ps1", "py", "pyi", "pyx", "r", "rb", "rs", "s", "sass", "scala", "scss", "sh", "sql", "sv",
    "svelte", "swift", "tf", "toml", "ts", "tsx", "vue", "xml", "yaml", "yml", "zig",
];

pub(crate) fn relative_to_workdir<'p>(path: &'p str, workdir: Option<&str>) -> &'p str {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let below = workdir.filter(|dir| dir.len() > 1).and_then(|dir| {
        path.strip_prefix(dir.trim_end_matches('/'))?.strip_prefix('/').filter(|rest| !rest.is_empty())
    });
    below.unwrap_or(path)
}

/// Truncates to `max_chars` characters and replaces control characters.
pub(super) fn sanitize(text: &str, max_chars: usize) -> String {
    let replace_control = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(max_chars).map(replace_control).collect()
}

/// Splits `Name: message`; the name may contain letters, digits, `_`, `.` and `$`.
pub(super) fn split_error_name(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().take(200).position(|b| !(b.is_ascii_alphanumeric() || b"_.$".contains(&b)));
    let name = &text[..end.unwrap_or(text.len().min(200))];
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let rest = &text[name.len()..];
    match rest.strip_prefix(':') {
        Some(message) if message.is_empty() || message.starts_with(' ') => Some((name, message.trim())),
        None if rest.is_empty() => Some((name, "")),
        _ => None,
    }
}

/// Whether the name ends as error types do in most languages.
pub(super) fn is_error_name(name: &str) -> bool {
    ["Error", "Exception", "Throwable"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_distinguished_from_lookalikes() {
        for line in [
            "src/x.rs:3:5: oops",
            "src/x.rs:3",
            "/a b/x.c:3:5: error: y",
            r"C:\x\y.c:3:5: error",
            "Makefile:3: *** missing separator.",
            "./pages/[id].tsx:12:1",
        ] {
            assert!(Position::at_start(line).is_some(), "{line}");
        }
        for line in [
            "12:30:45 hello",
            "2026-01-02T12:30:45Z x",
            "http://localhost:3000/x.js:3:5",
            "localhost:3000: refused",
            "127.0.0.1:8080: refused",
            "example.com:443: refused",
            "error: src/x.rs:3:5",
            "x.rs:0:5",
            "x.rs:12345678:1",
            "x.rs:3abc",
            ":3:5",
            "a=b/x.rs:3:5",
        ] {
            assert_eq!(Position::at_start(line), None, "{line}");
        }
    }

    #[test]
    fn source_extensions_are_sorted() {
        assert!(SOURCE_EXTENSIONS.is_sorted());
    }

    #[test]
    fn paths_below_the_working_directory_are_relative() {
        for (path, expected) in [
            ("/w/d/src/x.rs", "src/x.rs"),
            ("file:///w/d/x.js", "x.js"),
            ("/w/dd/x.js", "/w/dd/x.js"),
            ("./x.go", "./x.go"),
            ("/w/d/", "/w/d/"),
        ] {
            assert_eq!(relative_to_workdir(path, Some("/w/d")), expected);
            assert_eq!(relative_to_workdir(path, Some("/w/d/")), expected);
        }
        assert_eq!(relative_to_workdir("/x.rs", Some("/")), "/x.rs");
    }
}
