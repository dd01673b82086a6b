//! Over-long lines: both ends, and between them how much is missing.

use crate::decode::decode_text;
use crate::event::Event;
use crate::framer::{Line, LineBody, LineText};
use crate::json::Text;
use crate::json::write::Object;
use crate::map::NoPlace;

/// An escape or a character cut in two at the end of a head takes up this many bytes at most.
const LONGEST_HALF: usize = 12;

fn mark(bytes: u64) -> String {
    format!("... {bytes} bytes omitted ...")
}

/// Appends a line without a place in 001. Of an over-long one both ends, on one line: as an object about the line where
/// that was JSON, so that whoever reads JSON lines can go on doing so.
pub(super) fn pass_on(line: &Line<'_>, text: &LineText<'_>, why: NoPlace, out: &mut Vec<u8>) {
    let (head, tail, facts) = match text {
        LineText::Whole(text) => return out.extend_from_slice(text.as_bytes()),
        LineText::Cut { head, tail, facts } => (head, tail, facts),
    };
    let LineBody::Cut { head: head_bytes, tail: tail_bytes, .. } = line.body else { return };
    let left_out = line.length.saturating_sub((head_bytes.len() + tail_bytes.len()) as u64);
    // A character cut in two is no reason for a replacement character.
    let head = head.trim_end_matches('\u{fffd}');
    let tail = tail.trim_start_matches('\u{fffd}');
    if why == NoPlace::NotJson {
        out.extend_from_slice(format!("{head}{}{tail}", mark(left_out)).as_bytes());
        return;
    }
    let mut object = Object::open(out);
    if let Some(kind) = facts.outer.kind.as_deref().filter(|kind| is_foreign(kind)) {
        object.plain("type", kind);
    }
    object.raw("truncated", "true");
    object.raw("bytes", &line.length.to_string());
    object.raw("omitted_bytes", &left_out.to_string());
    object.plain("head", head);
    object.plain("tail", tail);
    object.close();
}

/// Whether an object of this type is not taken for an event.
fn is_foreign(kind: &str) -> bool {
    let mut line = Vec::new();
    let mut object = Object::open(&mut line);
    object.plain("type", kind);
    object.raw("item", "{}");
    object.close();
    let line = String::from_utf8(line).unwrap_or_default();
    matches!(decode_text(&line), Event::Unknown { .. })
}

/// A text with what is missing of it marked, if it is the one an over-long line was cut in.
pub(super) fn mended(text: &Text<'_>, line: &LineText<'_>) -> Option<String> {
    let LineText::Cut { head, tail, facts } = line else { return None };
    let begun = text.stored().0;
    let is_cut = |half| head.get(..head.len() - half).is_some_and(|head| head.ends_with(begun));
    if begun.is_empty() || !(0..=LONGEST_HALF.min(head.len())).any(is_cut) {
        return None;
    }
    // The string the head ends in; a longer one may begin behind it, and then no more is known.
    let reaches = begun.len() + LONGEST_HALF;
    let ends_there = |from: u64| from.abs_diff(head.len() as u64) <= reaches as u64;
    let (from, to) = facts.longest_string.filter(|(from, _)| ends_there(*from))?;
    let behind = facts.length.saturating_sub(to);
    let end = usize::try_from(behind).ok().and_then(|behind| tail.get(..tail.len().checked_sub(behind)?));
    let end = Text::cut_json_tail(end.unwrap_or_default(), 0);
    let left_out = (to - from).saturating_sub((begun.len() + end.stored().0.len()) as u64);
    Some(format!("{}\n{}\n{}", text.resolve(), mark(left_out), end.resolve()))
}
