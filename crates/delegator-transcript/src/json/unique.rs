//! Removes repeated keys from JSON objects, at any depth.
//!
//! Codex writes its web-search items with two `id` keys, and readers disagree about which of them counts. The
//! first one remains, but of two ids the one of the form `item_N`, as in `decode`; everything else is copied
//! byte for byte. The scan uses its own stack instead of recursion, so deep nesting cannot overflow the
//! thread's stack.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::scanner::{is_json, string_end};
use super::text::unescape;

/// The text without repeated keys; borrowed when it has none, or is not JSON.
pub fn without_repeated_keys(text: &str) -> Cow<'_, str> {
    let mut edits = if is_json(text) { find_edits(text) } else { Vec::new() };
    if edits.is_empty() {
        return Cow::Borrowed(text);
    }
    edits.sort_by_key(|edit| edit.place.start);
    let mut unique = String::with_capacity(text.len());
    let mut from = 0;
    for edit in edits {
        unique.push_str(text.get(from..edit.place.start).unwrap_or_default());
        unique.push_str(edit.replacement);
        from = edit.place.end;
    }
    unique.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(unique)
}

/// Whether this is the id of an item, as Codex numbers them.
pub(crate) fn is_item_id(id: &str) -> bool {
    id.strip_prefix("item_")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

struct Edit<'a> {
    place: Range<usize>,
    replacement: &'a str,
}

#[derive(Default)]
struct OpenObject<'a> {
    keys: HashSet<Cow<'a, str>>,
    /// The value of the first `id`, if it is a string.
    id: Option<Range<usize>>,
}

/// The edits that remove repeated members, each with the comma before it, and that move an `item_N` to the
/// first `id`. The grammar of `text` has been checked.
fn find_edits(text: &str) -> Vec<Edit<'_>> {
    let mut edits = Vec::new();
    // The open brackets; `None` for an array.
    let mut open: Vec<Option<OpenObject<'_>>> = Vec::new();
    // Where the repeated member begins that is being passed over, and how many brackets are open around it.
    let mut repeated: Option<(usize, usize)> = None;
    let (mut at, mut comma, mut value_end, mut expects_key) = (0, 0, 0, false);
    while let Some(byte) = text.as_bytes().get(at) {
        if let (b',' | b'}' | b']', Some((from, depth))) = (byte, repeated)
            && depth == open.len()
        {
            let member = text.get(from + 1..value_end).unwrap_or_default();
            if let Some(Some(object)) = open.last_mut()
                && let Some(edit) = object.id.clone().and_then(|id| move_item_id(text, id, member))
            {
                object.id = None;
                edits.push(edit);
            }
            edits.push(Edit { place: from..value_end, replacement: "" });
            repeated = None;
        }
        let start = at;
        at += 1;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b':' => continue,
            b'{' | b'[' => {
                expects_key = *byte == b'{';
                open.push(expects_key.then(OpenObject::default));
            }
            b'}' | b']' => drop(open.pop()),
            b',' => {
                comma = start;
                expects_key = matches!(open.last(), Some(Some(_)));
            }
            b'"' => {
                at = string_end(text, start);
                let key = text.get(start + 1..at - 1).filter(|_| std::mem::take(&mut expects_key));
                if let (Some(key), Some(Some(object)), None) = (key, open.last_mut(), repeated) {
                    let name = if key.contains('\\') { unescape(key).into() } else { key.into() };
                    if !object.keys.insert(name) {
                        repeated = Some((comma, open.len()));
                    } else if key == "id" {
                        object.id = string_value(text, at);
                    }
                }
            }
            _ => {}
        }
        value_end = at;
    }
    edits
}

/// The place of the string after the key that ends at `from`, without its quotes.
fn string_value(text: &str, from: usize) -> Option<Range<usize>> {
    let rest = text.get(from..)?;
    let is_separator = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n' | ':');
    let start = from + rest.find(|c| !is_separator(c))?;
    text.get(start..)?.starts_with('"').then(|| start + 1..string_end(text, start) - 1)
}

/// Replaces the first `id` by that of a repeated member if only that is an `item_N`.
fn move_item_id<'a>(text: &'a str, first_id: Range<usize>, member: &'a str) -> Option<Edit<'a>> {
    let (_, value) = member.trim_ascii_start().strip_prefix("\"id\"")?.split_once(':')?;
    let id = value.trim_ascii().strip_prefix('"')?.strip_suffix('"')?;
    let moves = is_item_id(id) && !is_item_id(text.get(first_id.clone())?);
    moves.then_some(Edit { place: first_id, replacement: id })
}

#[cfg(test)]
mod tests {
    use super::without_repeated_keys;

    #[test]
    fn the_first_of_repeated_keys_remains_at_any_depth() {
        for (given, expected) in [
            (r#"{"id":1,"a":2,"id":3}"#, r#"{"id":1,"a":2}"#),
            (r#"{ "id" : 1 , "id" : {"x":[1,"}"]} , "b":2 }"#, r#"{ "id" : 1  , "b":2 }"#),
            (
                r#"[{"a":{"b":1,"b":2,"c":[{"d":1,"d":1}]}},{"a":1}]"#,
                r#"[{"a":{"b":1,"c":[{"d":1}]}},{"a":1}]"#,
            ),
            (r#"{"a":1,"\u0061":2}"#, r#"{"a":1}"#),
            (r#"{"a":{},"b":[],"a":[]}"#, r#"{"a":{},"b":[]}"#),
            (r#"{"id":"item_0","id":"ws_1"}"#, r#"{"id":"item_0"}"#),
            (r#"{"a":[{"id" : "ws_1", "b":2, "id": "item_0" }]}"#, r#"{"a":[{"id" : "item_0", "b":2 }]}"#),
            (r#"{"id":"ws_0","id":"item_1","id":"item_2"}"#, r#"{"id":"item_1"}"#),
            (r#"{"id":"ws_1","id":"item_x","id":7}"#, r#"{"id":"ws_1"}"#),
        ] {
            assert_eq!(without_repeated_keys(given), expected, "{given}");
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        let deep = format!("{}1{}", r#"{"a":["#.repeat(100_000), "]}".repeat(100_000));
        for text in
            ["", "no JSON", r#"{"a":1,"a":"#, r#"{"a":1,"a":2"#, r#"{"a":1,"a":2}}"#, "{}", "[]", "3", &deep]
        {
            assert_eq!(without_repeated_keys(text), text);
        }
    }
}
