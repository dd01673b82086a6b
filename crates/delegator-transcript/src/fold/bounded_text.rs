//! Text in bounded memory, stored with its JSON escapes.
//!
//! Storing copies at most a few kilobytes into a reused buffer; escapes are resolved only when a report is
//! requested.

use crate::json::Text;
use crate::json::text::{head_end, tail_start, unescape};

/// The beginning of a text, or the end of text that arrives in lines.
#[derive(Clone, Debug, Default)]
pub(super) struct BoundedText {
    stored: String,
    escaped: bool,
    /// Whether the stored text is only a part.
    pub(super) truncated: bool,
    /// Length of the full text.
    pub(super) bytes: u64,
}

impl BoundedText {
    pub(super) fn new(text: &Text<'_>, limit: usize) -> Self {
        let mut bounded = Self::default();
        bounded.set(text, limit);
        bounded
    }

    /// Stores at most `limit` bytes of `text`.
    pub(super) fn set(&mut self, text: &Text<'_>, limit: usize) {
        let (stored, escaped) = text.stored();
        let end = if stored.len() <= limit { stored.len() } else { head_len(stored, escaped, limit) };
        self.stored.clear();
        self.stored.push_str(stored.get(..end).unwrap_or_default());
        self.escaped = escaped;
        self.truncated = end < stored.len();
        self.bytes = text.len() as u64;
    }

    /// Appends a line; of all lines at most the last `limit` bytes are stored. Texts with escapes cannot be
    /// appended to.
    pub(super) fn push_line(&mut self, line: &Text<'_>, full_bytes: Option<u64>, limit: usize) {
        let line = line.resolve();
        self.bytes += 1 + full_bytes.unwrap_or(line.len() as u64);
        self.truncated |= full_bytes.is_some();
        self.stored.push('\n');
        self.stored.push_str(&line);
        if self.stored.len() > limit {
            // Removes more than needed, so that not every further line moves the whole text.
            let retained = limit - limit / 16;
            self.stored.drain(..self.stored.ceil_char_boundary(self.stored.len() - retained));
            self.truncated = true;
        }
    }

    pub(super) fn resolve(&self) -> String {
        resolve(&self.stored, self.escaped)
    }
}

/// The beginning and the end of a text.
#[derive(Debug, Default)]
pub(super) struct HeadAndTail {
    head: String,
    tail: String,
    escaped: bool,
}

impl HeadAndTail {
    /// Stores both ends of `text`, or the head of `text` and the end of `separate_tail`.
    pub(super) fn set(
        &mut self,
        text: &Text<'_>,
        separate_tail: Option<&Text<'_>>,
        head: usize,
        tail: usize,
    ) {
        let (stored, escaped) = text.stored();
        self.head.clear();
        self.tail.clear();
        self.escaped = escaped;
        if separate_tail.is_none() && stored.len() <= head + tail {
            self.head.push_str(stored);
            return;
        }
        let until = head_len(stored, escaped, head.min(stored.len()));
        self.head.push_str(stored.get(..until).unwrap_or_default());
        let (stored, tail_escaped) = separate_tail.map_or((stored, escaped), Text::stored);
        // Both parts come from the same line: either both are escaped or none.
        self.escaped |= tail_escaped;
        let from = stored.len().saturating_sub(tail);
        let from = if tail_escaped { tail_start(stored, from) } else { stored.ceil_char_boundary(from) };
        self.tail.push_str(stored.get(from..).unwrap_or_default());
    }

    pub(super) fn resolve(&self) -> (String, String) {
        (resolve(&self.head, self.escaped), resolve(&self.tail, self.escaped))
    }
}

fn head_len(stored: &str, escaped: bool, limit: usize) -> usize {
    if escaped { head_end(stored, limit) } else { stored.floor_char_boundary(limit) }
}

fn resolve(stored: &str, escaped: bool) -> String {
    if escaped { unescape(stored) } else { stored.to_owned() }
}
