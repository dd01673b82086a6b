//! Text kept in bounded memory, still escaped.
//!
//! Keeping is a copy of at most a few kilobytes into a buffer that is used again; resolving escapes waits until
//! someone asks for a report.

use crate::json::Text;
use crate::json::text::{head_end, tail_start, unescape};

/// The beginning of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct BoundedText {
    stored: String,
    escaped: bool,
    truncated: bool,
    bytes: u64,
}

impl BoundedText {
    pub(super) fn new(text: &Text<'_>, limit: usize) -> Self {
        let mut bounded = Self::default();
        bounded.set(text, limit);
        bounded
    }

    /// Replaces what was kept by at most `limit` bytes of `text`.
    pub(super) fn set(&mut self, text: &Text<'_>, limit: usize) {
        let (stored, escaped) = text.stored();
        let end = if stored.len() <= limit { stored.len() } else { head_len(stored, escaped, limit) };
        self.stored.clear();
        self.stored.push_str(stored.get(..end).unwrap_or_default());
        self.escaped = escaped;
        self.truncated = end < stored.len();
        self.bytes = text.len() as u64;
    }

    /// The text that was set was itself only the beginning of one of so many bytes.
    pub(super) fn mark_truncated(&mut self, bytes: u64) {
        self.truncated = true;
        self.bytes = bytes;
    }

    pub(super) fn clear(&mut self) {
        self.stored.clear();
        self.stored.shrink_to(64 << 10);
        (self.escaped, self.truncated, self.bytes) = (false, false, 0);
    }

    pub(super) fn resolve(&self) -> String {
        resolve(&self.stored, self.escaped)
    }

    /// Whether there was more than is kept.
    pub(super) fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Bytes of the whole text.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Beginning and end of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadAndTail {
    head: String,
    tail: String,
    escaped: bool,
}

impl HeadAndTail {
    /// Replaces what was kept by the ends of `text`, or of a text whose end is `rest`.
    pub(super) fn set(
        &mut self,
        text: &Text<'_>,
        separate_tail: Option<&Text<'_>>,
        head: usize,
        tail: usize,
    ) {
        let (stored, escaped) = text.stored();
        let (tail_source, tail_escaped) = separate_tail.map_or((stored, escaped), Text::stored);
        self.clear();
        // Both halves are one form: plain text is a valid escaped one only if it has no backslash.
        self.escaped = escaped || tail_escaped;
        if separate_tail.is_none() && stored.len() <= head + tail {
            self.head.push_str(stored);
            return;
        }
        let until = head_len(stored, escaped, head.min(stored.len()));
        self.head.push_str(stored.get(..until).unwrap_or_default());
        let from = tail_source.len().saturating_sub(tail);
        let from =
            if tail_escaped { tail_start(tail_source, from) } else { tail_source.ceil_char_boundary(from) };
        self.tail.push_str(tail_source.get(from..).unwrap_or_default());
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

fn head_len(stored: &str, escaped: bool, limit: usize) -> usize {
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
