//! Detects items that the stream reports a second time.
//!
//! When the connection to the model breaks during a response, Codex retries and reports finished items again,
//! with new ids and without a start event. An item is a repeat if the stream was interrupted in this turn and
//! an item with identical content finished earlier in the turn. An id that already finished in this turn is a
//! repeat in any case, because ids are unique.

use crate::event::{Item, ItemDetails, ItemStatus};
use crate::json::Text;

const MAX_REMEMBERED: usize = 64;

#[derive(Debug)]
pub(super) struct Repeats {
    was_interrupted: bool,
    /// The fingerprints of the last finished items, 0 if there is none. Arrays, because they are searched for
    /// every item.
    ids: [u64; MAX_REMEMBERED],
    contents: [u64; MAX_REMEMBERED],
    next: usize,
    pub(super) count: u64,
}

impl Default for Repeats {
    fn default() -> Self {
        let none = [0; MAX_REMEMBERED];
        Self { was_interrupted: false, ids: none, contents: none, next: 0, count: 0 }
    }
}

impl Repeats {
    pub(super) fn turn_started(&mut self) {
        *self = Self { count: self.count, ..Self::default() };
    }

    pub(super) fn stream_interrupted(&mut self) {
        self.was_interrupted = true;
    }

    pub(super) fn has_finished(&self, id: &Text<'_>) -> bool {
        !id.is_empty() && self.ids.contains(&id_fingerprint(id))
    }

    /// Records a finished item; returns whether it is a repeat.
    pub(super) fn record_finished(&mut self, item: &Item<'_>, was_open: bool) -> bool {
        let id = if item.id.is_empty() { 0 } else { id_fingerprint(&item.id) };
        let content = content_fingerprint(item);
        let is_known = id != 0 && self.ids.contains(&id);
        let is_compared = self.was_interrupted && !was_open && content != 0;
        let is_same = is_compared && self.contents.contains(&content);
        if is_known || is_same {
            self.count += 1;
            return true;
        }
        (self.ids[self.next], self.contents[self.next]) = (id, content);
        self.next = (self.next + 1) % MAX_REMEMBERED;
        false
    }
}

fn id_fingerprint(id: &Text<'_>) -> u64 {
    let mut hash = Fingerprint(0);
    hash.add_text(id);
    hash.value()
}

/// Fingerprint of an item without its id. Returns 0 for types that are not compared: repeated file changes
/// and plans have no effect, and warnings are counted as they come.
fn content_fingerprint(item: &Item<'_>) -> u64 {
    let mut hash = Fingerprint(item.full_bytes.unwrap_or(0));
    hash.add_word(item.status.map_or(0, |status: ItemStatus| status as u64 + 1));
    match &item.details {
        ItemDetails::AgentMessage { text } => hash.add_texts(1, [text]),
        ItemDetails::Reasoning { text } => hash.add_texts(2, [text]),
        ItemDetails::CommandExecution(command) => {
            hash.add_word(command.exit_code.map_or(u64::MAX, |code| u64::from(code.cast_unsigned())));
            hash.add_word(command.output_bytes);
            hash.add_texts(3, [&command.command, &command.output]);
            hash.add_texts(0, &command.output_tail);
        }
        ItemDetails::McpToolCall(call) => {
            hash.add_texts(4, [&call.server, &call.tool]);
            for (part, text) in [&call.arguments, &call.result, &call.error].into_iter().enumerate() {
                hash.add_texts(part as u64, text);
            }
        }
        ItemDetails::WebSearch { query, action } => {
            hash.add_texts(5, [query]);
            hash.add_bytes(action.unwrap_or_default().as_bytes());
        }
        _ => return 0,
    }
    hash.value()
}

/// A fast hash in one pass, because finished items may have megabytes of output.
struct Fingerprint(u64);

impl Fingerprint {
    fn add_word(&mut self, word: u64) {
        self.0 = mix(self.0, word);
    }

    fn add_text(&mut self, text: &Text<'_>) {
        self.add_bytes(text.stored().0.as_bytes());
    }

    fn add_texts<'t, 'a: 't>(&mut self, kind: u64, texts: impl IntoIterator<Item = &'t Text<'a>>) {
        self.add_word(kind);
        texts.into_iter().for_each(|text| self.add_text(text));
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        self.add_word(bytes.len() as u64);
        // Four independent lanes, because each multiplication depends on the previous one.
        let mut lanes = [self.0, !self.0, self.0.rotate_left(17), self.0.rotate_left(41)];
        let mut pieces = bytes.chunks_exact(32);
        for piece in &mut pieces {
            for (lane, word) in lanes.iter_mut().zip(piece.chunks_exact(8)) {
                *lane = mix(*lane, to_word(word));
            }
        }
        for (lane, word) in lanes.iter_mut().zip(pieces.remainder().chunks(8)) {
            *lane = mix(*lane, to_word(word));
        }
        self.0 = lanes.into_iter().reduce(mix).unwrap_or_default();
    }

    /// Never 0, which means "no fingerprint".
    fn value(&self) -> u64 {
        self.0 | 1
    }
}

fn to_word(bytes: &[u8]) -> u64 {
    // A copy of fewer than eight bytes would be a call.
    let fold = || bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    bytes.first_chunk().map_or_else(fold, |word| u64::from_le_bytes(*word))
}

fn mix(state: u64, word: u64) -> u64 {
    (state ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_text_counts() {
        let fingerprint = |text: &str| id_fingerprint(&Text::plain(text));
        let text = "x".repeat(200);
        for at in 0..text.len() {
            let mut other = text.clone();
            other.replace_range(at..=at, "y");
            assert_ne!(fingerprint(&text), fingerprint(&other), "{at}");
            assert_ne!(fingerprint(&text), fingerprint(&text[..at]), "{at}");
        }
        assert_eq!(fingerprint(&text), fingerprint(&text.clone()));
    }
}
