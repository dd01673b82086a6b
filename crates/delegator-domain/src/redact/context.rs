//! Tracks what precedes a candidate: the kind of its line, and the bytes to its left.
//!
//! A line is JSON when its first bytes show it: `"`, `}`, `]`, `,` or `:`; `{` before `"` or `}`; `[` before
//! anything a JSON array can start with. This holds for JSON lines and for pretty-printed documents alike,
//! whose lines never start inside a string. A log line such as `[INFO] …` or `{ code` is plain. An indented
//! line that starts with a digit may be a number in a pretty-printed array; it is plain, except that outside
//! quotes a value that could be such a number is never masked.
//!
//! Looking left is limited to [`LOOK_BEHIND`] bytes, which the stream always retains. Only the length of a
//! run of backslashes matters beyond that; the stream counts it separately.

use memchr::{memchr2, memrchr};

/// Number of bytes before a candidate that may be inspected.
pub(super) const LOOK_BEHIND: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Start { indented: bool },
    Brace,
    Bracket,
    Json,
    Number,
    Plain,
}

#[derive(Debug, Clone)]
pub(super) struct LineTracker {
    kind: LineKind,
    /// Whether to track quotes; needed only for values that could stand outside a string.
    tracks_strings: bool,
    in_string: bool,
    escaped: bool,
}

impl LineTracker {
    pub(super) fn new(tracks_strings: bool) -> Self {
        Self { kind: LineKind::Start { indented: false }, tracks_strings, in_string: false, escaped: false }
    }

    pub(super) fn advance(&mut self, mut bytes: &[u8]) {
        if let Some(newline) = memrchr(b'\n', bytes) {
            bytes = &bytes[newline + 1..];
            *self = Self::new(self.tracks_strings);
        }
        if matches!(self.kind, LineKind::Start { .. } | LineKind::Brace | LineKind::Bracket) {
            for &byte in bytes {
                self.kind = next_kind(self.kind, byte);
                if matches!(self.kind, LineKind::Json | LineKind::Number | LineKind::Plain) {
                    break;
                }
            }
        }
        if self.tracks_strings && self.kind != LineKind::Plain {
            self.advance_strings(bytes);
        }
    }

    /// Whether the line is JSON, given the byte at the current position.
    pub(super) fn is_json(&self, byte: u8) -> bool {
        next_kind(self.kind, byte) == LineKind::Json
    }

    /// Whether a JSON value outside a string may stand here.
    pub(super) fn is_bare(&self, byte: u8) -> bool {
        matches!(next_kind(self.kind, byte), LineKind::Json | LineKind::Number) && !self.in_string
    }

    fn advance_strings(&mut self, mut bytes: &[u8]) {
        if self.escaped && !bytes.is_empty() {
            bytes = &bytes[1..];
            self.escaped = false;
        }
        while let Some(at) = memchr2(b'"', b'\\', bytes) {
            if bytes[at] == b'"' {
                self.in_string = !self.in_string;
                bytes = &bytes[at + 1..];
            } else if at + 1 < bytes.len() {
                bytes = &bytes[at + 2..];
            } else {
                self.escaped = true;
                return;
            }
        }
    }
}

fn next_kind(kind: LineKind, byte: u8) -> LineKind {
    match (kind, byte) {
        (LineKind::Json | LineKind::Number | LineKind::Plain, _) => kind,
        (LineKind::Start { .. }, b' ' | b'\t') => LineKind::Start { indented: true },
        (_, b' ' | b'\t' | b'\r') => kind,
        (LineKind::Start { .. }, b'{') => LineKind::Brace,
        (LineKind::Start { .. }, b'[') => LineKind::Bracket,
        (LineKind::Start { .. }, b'"' | b'}' | b']' | b',' | b':') => LineKind::Json,
        (LineKind::Start { indented: true }, b'0'..=b'9' | b'-') => LineKind::Number,
        (LineKind::Brace, b'"' | b'}') => LineKind::Json,
        (LineKind::Bracket, b'"' | b'{' | b'[' | b']' | b'0'..=b'9' | b'-' | b't' | b'f' | b'n') => {
            LineKind::Json
        }
        _ => LineKind::Plain,
    }
}

/// Whether `before` (with `earlier` backslashes in front of it) ends in an odd run of backslashes.
fn ends_in_escape(before: &[u8], earlier: usize) -> bool {
    let run = before.iter().rev().take_while(|&&byte| byte == b'\\').count();
    let run = if run == before.len() { run + earlier } else { run };
    run % 2 == 1
}

/// Whether the byte after `before` is part of a JSON escape that began earlier.
pub(super) fn is_inside_escape(before: &[u8], earlier: usize) -> bool {
    ends_in_escape(before, earlier)
        || (1..=4).any(|count| {
            let Some(at) = before.len().checked_sub(count) else { return false };
            before[at] == b'u'
                && before[at + 1..].iter().all(u8::is_ascii_hexdigit)
                && ends_in_escape(&before[..at], earlier)
        })
}

/// Whether a token may start after `before`: at no letter or digit, or at one that belongs to an escape.
pub(super) fn is_boundary(before: &[u8]) -> bool {
    let before = &before[before.len().saturating_sub(LOOK_BEHIND)..];
    let Some((&last, rest)) = before.split_last() else { return true };
    if !last.is_ascii_alphanumeric() {
        return true;
    }
    let control = matches!(last, b'n' | b'r' | b't' | b'b' | b'f') && rest.ends_with(b"\\");
    control || ends_in_hex(before, b"\\u", 4) || ends_in_hex(before, b"%", 2) || ends_in_colour(rest)
}

fn ends_in_hex(before: &[u8], prefix: &[u8], digits: usize) -> bool {
    before
        .split_at_checked(before.len().saturating_sub(digits))
        .is_some_and(|(start, hex)| start.ends_with(prefix) && hex.iter().all(u8::is_ascii_hexdigit))
}

/// `before`, up to the final letter, is the start of a terminal's colour sequence, raw or escaped.
fn ends_in_colour(before: &[u8]) -> bool {
    let parameters = before.iter().rev().take_while(|&&byte| byte.is_ascii_digit() || byte == b';').count();
    let start = &before[..before.len() - parameters];
    [&b"\x1b["[..], b"\\u001b[", b"\\u001B[", b"\\x1b[", b"\\033[", b"\\e["]
        .iter()
        .any(|escape| start.ends_with(escape))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> LineKind {
        let mut tracker = LineTracker::new(false);
        tracker.advance(line.as_bytes());
        tracker.kind
    }

    #[test]
    fn json_plain_and_number_lines_are_distinguished() {
        for json in ["{\"a\":", "  \"a\": 1", "}, x", "[1, 2", "[ {", "old\n{ \"a", "{}", "[null"] {
            assert_eq!(kind(json), LineKind::Json, "{json}");
        }
        for plain in ["a {", "[INFO] x", "{ code", "{\"a\n b", "12 x", "- \"x\""] {
            assert_eq!(kind(plain), LineKind::Plain, "{plain}");
        }
        assert_eq!(kind("   12"), LineKind::Number);
    }

    #[test]
    fn boundaries_and_escapes_are_recognized() {
        for before in
            ["", " ", "x\n", "\"", "\\n", "\\\\n", "\\u000a", "%3D", "\x1b[32m", "\\u001b[1;32m", "_"]
        {
            assert!(is_boundary(before.as_bytes()), "{before}");
        }
        for before in ["a", "ta", "n", "u000a", "3D", "[32m"] {
            assert!(!is_boundary(before.as_bytes()), "{before}");
        }
        for (before, inside) in [
            ("\\", true),
            ("\\\\", false),
            ("\\u", true),
            ("\\u00e", true),
            ("\\u00e9", false),
            ("\\\\u00", false),
        ] {
            assert_eq!(is_inside_escape(before.as_bytes(), 0), inside, "{before}");
        }
        assert!(is_inside_escape(b"\\", 2));
        assert!(!is_inside_escape(b"\\", 1));
    }
}
