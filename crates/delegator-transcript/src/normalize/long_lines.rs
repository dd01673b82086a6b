//! Writes over-long lines: both ends, and between them how many bytes are missing.

use std::borrow::Cow;

use super::strict::MARK;
use crate::decode::{Event, decode_text};
use crate::framer::{Line, LineBody, LineText};
use crate::json::Text;
use crate::json::write::object_text;
use crate::longline::{LineRemains, omission_mark};
use crate::map::UnmappedReason;

/// Longest escape or character that can be split at the end of a head.
const MAX_SPLIT_BYTES: usize = 12;

/// A line without a counterpart. An over-long line is reduced to its two ends; if it was JSON, to an object
/// with both ends, so that readers of JSON lines can continue.
pub(super) fn unmapped<'a>(line: &Line<'_>, text: &'a LineText<'_>, reason: UnmappedReason) -> Cow<'a, str> {
    let (head, tail, facts) = match text {
        LineText::Whole(text) => return Cow::Borrowed(text),
        LineText::Truncated { head, tail, facts } => (head, tail, facts),
    };
    let LineBody::Truncated { head: head_bytes, tail: tail_bytes, .. } = line.body else {
        return Cow::default();
    };
    let omitted_bytes = line.length.saturating_sub((head_bytes.len() + tail_bytes.len()) as u64);
    // A split character must not become a replacement character.
    let head = head.trim_end_matches('\u{fffd}');
    let tail = tail.trim_start_matches('\u{fffd}');
    if reason == UnmappedReason::NotJson {
        return Cow::Owned(format!("{head}{}{tail}", omission_mark(omitted_bytes)));
    }
    Cow::Owned(object_text(|object| {
        if let Some(kind) = facts.outer.kind.as_deref().filter(|kind| is_not_event(kind)) {
            object.plain("type", kind);
        }
        object.plain(MARK, "truncated");
        object.raw("truncated", "true");
        object.value("bytes", &line.length);
        object.value("omitted_bytes", &omitted_bytes);
        object.plain("head", head);
        object.plain("tail", tail);
    }))
}

/// Whether an object of this type is not decoded as an event.
fn is_not_event(kind: &str) -> bool {
    let line = object_text(|object| {
        object.plain("type", kind);
        object.raw("item", "{}");
    });
    matches!(decode_text(&line), Event::Unknown { .. })
}

/// Adds the missing bytes mark and the end of the text, if this is the text in which an over-long line was
/// truncated.
pub(super) fn with_omission_mark(text: &Text<'_>, line: &LineText<'_>) -> Option<String> {
    let LineText::Truncated { head, tail, facts } = line else { return None };
    let head_text = text.stored().0;
    let is_cut = |half| head.get(..head.len() - half).is_some_and(|head| head.ends_with(head_text));
    if head_text.is_empty() || !(0..=MAX_SPLIT_BYTES.min(head.len())).any(is_cut) {
        return None;
    }
    // The longest string must be the one in which the head ends; otherwise its end is unknown.
    let reaches = head_text.len() + MAX_SPLIT_BYTES;
    let ends_there = |from: u64| from.abs_diff(head.len() as u64) <= reaches as u64;
    let (from, to) = facts.longest_string.filter(|(from, _)| ends_there(*from))?;
    let end = LineRemains { tail, facts }.end_of_longest_string().unwrap_or_default();
    let omitted_bytes = (to - from).saturating_sub((head_text.len() + end.stored().0.len()) as u64);
    Some(format!("{}\n{}\n{}", text.resolve(), omission_mark(omitted_bytes), end.resolve()))
}
