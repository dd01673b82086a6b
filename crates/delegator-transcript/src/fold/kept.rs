//! Text kept in bounded memory, still escaped.
//!
//! Keeping is a copy of at most a few kilobytes into a buffer that is used again; resolving escapes waits until
//! someone asks for a report.

use crate::json::Text;
use crate::json::text::{head_end, tail_start, unescape};

/// The beginning of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptText {
    stored: String,
    escaped: bool,
    cut: bool,
    bytes: u64,
}

impl KeptText {
    pub(super) fn of(text: &Text<'_>, limit: usize) -> Self {
        let mut kept = Self::default();
        kept.set(text, limit);
        kept
    }

    /// Replaces what was kept by at most `limit` bytes of `text`.
    pub(super) fn set(&mut self, text: &Text<'_>, limit: usize) {
        let (stored, escaped) = text.stored();
        let end = if stored.len() <= limit { stored.len() } else { cut_head(stored, escaped, limit) };
        self.stored.clear();
        self.stored.push_str(stored.get(..end).unwrap_or_default());
        self.escaped = escaped;
        self.cut = end < stored.len();
        self.bytes = text.len() as u64;
    }

    /// The text that was set was itself only the beginning of one of so many bytes.
    pub(super) fn is_beginning_of(&mut self, bytes: u64) {
        self.cut = true;
        self.bytes = bytes;
    }

    pub(super) fn clear(&mut self) {
        self.stored.clear();
        self.stored.shrink_to(64 << 10);
        (self.escaped, self.cut, self.bytes) = (false, false, 0);
    }

    pub(super) fn resolve(&self) -> String {
        resolve(&self.stored, self.escaped)
    }

    /// Whether there was more than is kept.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Bytes of the whole text.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Beginning and end of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptEnds {
    head: String,
    tail: String,
    escaped: bool,
}

impl KeptEnds {
    /// Replaces what was kept by the ends of `text`, or of a text whose end is `rest`.
    pub(super) fn set(&mut self, text: &Text<'_>, rest: Option<&Text<'_>>, head: usize, tail: usize) {
        let (stored, escaped) = text.stored();
        let (end_of, end_escaped) = rest.map_or((stored, escaped), Text::stored);
        self.clear();
        // Both halves are one form: plain text is a valid escaped one only if it has no backslash.
        self.escaped = escaped || end_escaped;
        if rest.is_none() && stored.len() <= head + tail {
            self.head.push_str(stored);
            return;
        }
        let until = cut_head(stored, escaped, head.min(stored.len()));
        self.head.push_str(stored.get(..until).unwrap_or_default());
        let from = end_of.len().saturating_sub(tail);
        let from = if end_escaped { tail_start(end_of, from) } else { end_of.ceil_char_boundary(from) };
        self.tail.push_str(end_of.get(from..).unwrap_or_default());
    }

    pub(super) fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
        self.escaped = false;
    }

    pub(super) fn resolve(&self) -> (String, String) {
        (resolve(&self.head, self.escaped), resolve(&self.tail, self.escaped))
    }
}

fn cut_head(stored: &str, escaped: bool, limit: usize) -> usize {
    if escaped { head_end(stored, limit) } else { stored.floor_char_boundary(limit) }
}

fn resolve(stored: &str, escaped: bool) -> String {
    if !escaped {
        return stored.to_owned();
    }
    let mut text = String::with_capacity(stored.len());
    unescape(stored, &mut text);
    text
}
