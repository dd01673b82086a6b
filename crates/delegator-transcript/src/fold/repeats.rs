//! Items told a second time.
//!
//! When the connection to the model is cut in the middle of an answer, Codex asks again and tells what is already
//! finished once more, under new ids and without a beginning. An item is such a repeat if the stream was cut in this
//! turn and an item with the very same content finished in it before. An id that finished in this turn before makes
//! an item a repeat too, cut or not: ids are unique.

use crate::event::{Item, ItemDetails, Status};
use crate::json::Text;

/// Items compared with at most.
const REMEMBERED: usize = 64;

#[derive(Debug)]
pub(super) struct Repeats {
    was_cut: bool,
    contents: [u64; REMEMBERED],
    ids: [u64; REMEMBERED],
    next: usize,
    count: u64,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { was_cut: false, contents: [0; REMEMBERED], ids: [0; REMEMBERED], next: 0, count: 0 }
    }
}

impl Repeats {
    pub(super) fn turn_started(&mut self) {
        *self = Self { count: self.count, ..Self::default() };
    }

    pub(super) fn stream_was_cut(&mut self) {
        self.was_cut = true;
    }

    /// Whether an item of this id finished already.
    pub(super) fn has_finished(&self, id: &Text<'_>) -> bool {
        !id.is_empty() && self.ids.contains(&print_of_id(id))
    }

    /// Takes note of a finished item and says whether it is one that was told before.
    pub(super) fn finished(&mut self, item: &Item<'_>, had_begun: bool) -> bool {
        let id = if item.id.is_empty() { 0 } else { print_of_id(&item.id) };
        let content = print_of_content(item);
        let is_known = id != 0 && self.ids.contains(&id);
        let is_same = self.was_cut && !had_begun && content != 0 && self.contents.contains(&content);
        if is_known || is_same {
            self.count += 1;
            return true;
        }
        (self.ids[self.next], self.contents[self.next]) = (id, content);
        self.next = (self.next + 1) % REMEMBERED;
        false
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

fn print_of_id(id: &Text<'_>) -> u64 {
    let mut print = Print(0);
    print.text(id);
    print.value()
}

/// Of all that is told of an item but its id; 0 for what is not compared: changes told twice change nothing, a plan
/// told twice is the same plan, a warning is counted as it comes.
fn print_of_content(item: &Item<'_>) -> u64 {
    let mut print = Print(item.full_bytes.unwrap_or(0));
    print.word(item.status.map_or(0, |status: Status| status as u64 + 1));
    match &item.details {
        ItemDetails::AgentMessage { text } => print.texts(1, [text]),
        ItemDetails::Reasoning { text } => print.texts(2, [text]),
        ItemDetails::CommandExecution(command) => {
            print.word(command.exit_code.map_or(u64::MAX, |code| u64::from(code.cast_unsigned())));
            print.word(command.output_bytes);
            print.texts(3, [&command.command, &command.output]);
            print.texts(0, &command.output_tail);
        }
        ItemDetails::McpToolCall(call) => {
            print.texts(4, [&call.server, &call.tool]);
            for (part, text) in [&call.arguments, &call.result, &call.error].into_iter().enumerate() {
                print.texts(part as u64, text);
            }
        }
        ItemDetails::WebSearch { query, action } => {
            print.texts(5, [query]);
            print.bytes(action.unwrap_or_default().as_bytes());
        }
        _ => return 0,
    }
    print.value()
}

/// A hash of everything it is given, in one pass at the speed of memory: finished items may be megabytes.
struct Print(u64);

impl Print {
    fn word(&mut self, word: u64) {
        self.0 = mix(self.0, word);
    }

    fn text(&mut self, text: &Text<'_>) {
        self.bytes(text.stored().0.as_bytes());
    }

    fn texts<'t, 'a: 't>(&mut self, kind: u64, texts: impl IntoIterator<Item = &'t Text<'a>>) {
        self.word(kind);
        texts.into_iter().for_each(|text| self.text(text));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        // Four sums side by side, since each multiplication waits for the one before it.
        let mut lanes = [self.0, !self.0, self.0.rotate_left(17), self.0.rotate_left(41)];
        let mut pieces = bytes.chunks_exact(32);
        for piece in &mut pieces {
            for (lane, word) in lanes.iter_mut().zip(piece.chunks_exact(8)) {
                *lane = mix(*lane, word_of(word));
            }
        }
        for (lane, word) in lanes.iter_mut().zip(pieces.remainder().chunks(8)) {
            *lane = mix(*lane, word_of(word));
        }
        self.0 = lanes.into_iter().reduce(mix).unwrap_or_default();
    }

    /// Never 0, which stands for nothing.
    fn value(&self) -> u64 {
        self.0 | 1
    }
}

fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn mix(state: u64, word: u64) -> u64 {
    (state ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_text_counts() {
        let print = |text: &str| print_of_id(&Text::plain(text));
        let text = "x".repeat(200);
        for at in 0..text.len() {
            let mut other = text.clone();
            other.replace_range(at..=at, "y");
            assert_ne!(print(&text), print(&other), "{at}");
            assert_ne!(print(&text), print(&text[..at]), "{at}");
        }
        assert_eq!(print(&text), print(&text.clone()));
    }
}
