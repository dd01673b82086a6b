//! Removes repeated keys from JSON objects, at any depth.
//!
//! Codex writes its web-search items with two `id` keys, and readers disagree about which of them counts. The first one
//! remains, as in `decode`; everything else is copied byte for byte. The scan uses its own stack instead of recursion,
//! so deep nesting cannot overflow the thread's stack.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::scanner::{is_json, string_end};
use super::text::unescape;

/// The text without repeated keys; borrowed when it has none, or is not JSON.
pub fn without_repeated_keys(text: &str) -> Cow<'_, str> {
    let removed = if is_json(text) { repeated_members(text) } else { Vec::new() };
    if removed.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut unique = String::with_capacity(text.len());
    let mut from = 0;
    for member in removed {
        unique.push_str(text.get(from..member.start).unwrap_or_default());
        from = member.end;
    }
    unique.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(unique)
}

/// The members to remove, in order, each with the comma before it. The grammar of `text` has been checked.
fn repeated_members(text: &str) -> Vec<Range<usize>> {
    let mut removed = Vec::new();
    // The open brackets; for an object with the keys it has had so far.
    let mut open: Vec<Option<HashSet<Cow<'_, str>>>> = Vec::new();
    // Where the repeated member begins that is being passed over, and how many brackets are open around it.
    let mut repeated: Option<(usize, usize)> = None;
    let (mut at, mut comma, mut value_end, mut expects_key) = (0, 0, 0, false);
    while let Some(byte) = text.as_bytes().get(at) {
        if let (b',' | b'}' | b']', Some((from, depth))) = (byte, repeated)
            && depth == open.len()
        {
            removed.push(from..value_end);
            repeated = None;
        }
        let start = at;
        at += 1;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b':' => continue,
            b'{' | b'[' => {
                expects_key = *byte == b'{';
                open.push(expects_key.then(HashSet::new));
            }
            b'}' | b']' => drop(open.pop()),
            b',' => {
                comma = start;
                expects_key = matches!(open.last(), Some(Some(_)));
            }
            b'"' => {
                at = string_end(text, start);
                let key = text.get(start + 1..at - 1).filter(|_| std::mem::take(&mut expects_key));
                if let (Some(key), Some(Some(keys)), None) = (key, open.last_mut(), repeated)
                    && !keys.insert(if key.contains('\\') { unescape(key).into() } else { key.into() })
                {
                    repeated = Some((comma, open.len()));
                }
            }
            _ => {}
        }
        value_end = at;
    }
    removed
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
