//! Joins the chunks of a message, and bounds the memory that texts take.

use delegator_domain::text::{beginning, end};

use crate::json::Text;
use crate::longline::omission_mark;
use crate::wire::acp::Chunk;

/// The beginning of a message; a report has no more of it either.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// Each end of a command's output.
const MAX_OUTPUT_END_BYTES: usize = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Message,
    Reasoning,
}

#[derive(Debug)]
pub(super) struct JoinedText {
    pub(super) kind: TextKind,
    pub(super) text: String,
    message_id: Option<String>,
    bytes: u64,
}

impl JoinedText {
    pub(super) fn begin(kind: TextKind, chunk: &Chunk<'_>) -> Self {
        let message_id = chunk.message_id.as_ref().map(|id| id.resolve().into_owned());
        let mut joined = Self { kind, text: String::new(), message_id, bytes: 0 };
        joined.push(&chunk.text);
        joined
    }

    pub(super) fn continues(&self, kind: TextKind, chunk: &Chunk<'_>) -> bool {
        let id = chunk.message_id.as_ref().map(Text::resolve);
        self.kind == kind && self.message_id.as_deref() == id.as_deref()
    }

    pub(super) fn push(&mut self, text: &Text<'_>) {
        let text = text.resolve();
        self.bytes += text.len() as u64;
        let space = MAX_MESSAGE_BYTES.saturating_sub(self.text.len());
        self.text.push_str(beginning(&text, space));
    }

    /// The full length, if only the beginning is stored.
    pub(super) fn full_bytes(&self) -> Option<u64> {
        Some(self.bytes).filter(|bytes| *bytes > self.text.len() as u64)
    }
}

/// The output of a command, of which the middle is dropped if it is long.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    head: String,
    tail: String,
    pub(super) bytes: u64,
}

impl Output {
    pub(super) fn of(text: &Text<'_>) -> Self {
        let mut output = Self::default();
        output.push(&text.resolve());
        output
    }

    pub(super) fn push(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        let space = MAX_OUTPUT_END_BYTES.saturating_sub(self.head.len());
        let (head, rest) =
            text.split_at(text.floor_char_boundary(if self.tail.is_empty() { space } else { 0 }));
        self.head.push_str(head);
        self.tail.push_str(end(rest, MAX_OUTPUT_END_BYTES));
        // Removes more than needed, so that not every further piece moves the whole tail.
        if self.tail.len() > 2 * MAX_OUTPUT_END_BYTES {
            self.tail.drain(..self.tail.ceil_char_boundary(self.tail.len() - MAX_OUTPUT_END_BYTES));
        }
    }

    pub(super) fn stored_bytes(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    pub(super) fn text(&self) -> String {
        let omitted = self.bytes - self.stored_bytes() as u64;
        match omitted {
            0 => format!("{}{}", self.head, self.tail),
            _ => format!("{}\n{}\n{}", self.head, omission_mark(omitted), self.tail),
        }
    }
}

pub(super) fn bounded(text: &Text<'_>, max_bytes: usize) -> String {
    beginning(&text.resolve(), max_bytes).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_keeps_both_ends_in_bounded_memory() {
        let mut output = Output::default();
        output.push("first\n");
        for _ in 0..40 {
            output.push(&"é".repeat(50_000));
        }
        output.push("\nlast");
        assert!(output.stored_bytes() <= 3 * MAX_OUTPUT_END_BYTES);
        assert_eq!(output.bytes, 6 + 40 * 100_000 + 5);
        let text = output.text();
        assert!(
            text.starts_with("first\né") && text.ends_with("é\nlast") && text.contains(" bytes omitted ...")
        );
    }

    #[test]
    fn one_long_piece_is_bounded_too() {
        let text = format!("first {} last", "x".repeat(5 << 20));
        let output = Output::of(&Text::plain(&text));
        assert_eq!(output.stored_bytes(), 2 * MAX_OUTPUT_END_BYTES);
        assert!(output.text().starts_with("first x") && output.text().ends_with("x last"));
        assert_eq!(Output::of(&Text::plain("short")).text(), "short");
    }
}
