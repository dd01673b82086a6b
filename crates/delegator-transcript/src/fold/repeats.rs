//! Items told a second time.
//!
//! When the connection to the model is cut in the middle of an answer, Codex asks again and tells what is already
//! finished once more, under new ids and without a beginning. An item is such a repeat if the stream was cut in this
//! turn and an item of the same kind and content finished in it before.

use crate::event::{Item, ItemDetails};
use crate::json::Text;

/// Items compared with at most.
const REMEMBERED: usize = 64;

#[derive(Debug)]
pub(super) struct Repeats {
    was_cut: bool,
    finished: [u64; REMEMBERED],
    next: usize,
    count: u64,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { was_cut: false, finished: [0; REMEMBERED], next: 0, count: 0 }
    }
}

impl Repeats {
    pub(super) fn turn_started(&mut self) {
        self.was_cut = false;
        self.finished = [0; REMEMBERED];
    }

    pub(super) fn stream_was_cut(&mut self) {
        self.was_cut = true;
    }

    pub(super) fn finished(&mut self, item: &Item<'_>) {
        if let Some(print) = fingerprint(&item.details) {
            self.finished[self.next] = print;
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    pub(super) fn is_repeat(&mut self, item: &Item<'_>) -> bool {
        let repeats =
            self.was_cut && fingerprint(&item.details).is_some_and(|print| self.finished.contains(&print));
        self.count += u64::from(repeats);
        repeats
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// Tells contents apart without reading all of them: length and both ends.
fn fingerprint(details: &ItemDetails<'_>) -> Option<u64> {
    let (kind, text, more) = match details {
        ItemDetails::AgentMessage { text } => (1, text, 0),
        ItemDetails::Reasoning { text } => (2, text, 0),
        ItemDetails::CommandExecution(command) => (3, &command.command, command.output_bytes),
        ItemDetails::McpToolCall(call) => (4, &call.tool, call.arguments.as_ref().map_or(0, hash)),
        ItemDetails::WebSearch { query, .. } => (5, query, 0),
        // Changes told twice change nothing; a plan told twice is the same plan; a warning is counted as it comes.
        _ => return None,
    };
    Some(mix(mix(hash(text), kind), more) | 1)
}

fn hash(text: &Text<'_>) -> u64 {
    let bytes = text.stored().0.as_bytes();
    let head = &bytes[..bytes.len().min(32)];
    let tail = &bytes[bytes.len().saturating_sub(32)..];
    let words = head.chunks(8).chain(tail.chunks(8)).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(bytes.len() as u64, mix)
}

fn mix(state: u64, word: u64) -> u64 {
    (state ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}
