//! Removes repeated keys from JSON objects, at any depth.
//!
//! Codex writes its web-search items with two `id` keys, and readers disagree about which of them counts. The first one
//! remains, as in `decode`; everything else is copied byte for byte. The scan uses its own stack instead of recursion,
//! so deep nesting cannot overflow the thread's stack.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::{Cursor, Scan, ScanError, Text};

/// The text without repeated keys; borrowed when it has none, or is not JSON.
pub fn without_repeated_keys(text: &str) -> Cow<'_, str> {
    let removed = repeated_members(text).unwrap_or_default();
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

/// One open bracket; for an object with the keys it has had so far.
enum Frame<'a> {
    Array,
    Object(HashSet<Cow<'a, str>>),
}

/// The members to remove, in order, each with the comma before it.
fn repeated_members(text: &str) -> Scan<Vec<Range<usize>>> {
    let mut cursor = Cursor::new(text);
    let (mut open, mut removed) = (Vec::new(), Vec::new());
    loop {
        let closing = match cursor.peek().ok_or(ScanError::Truncated)? {
            b'{' => {
                open.push(Frame::Object(HashSet::new()));
                Some(b'}')
            }
            b'[' => {
                open.push(Frame::Array);
                Some(b']')
            }
            _ => None,
        };
        match closing {
            Some(closing) => {
                cursor.pos += 1;
                if cursor.peek() != Some(closing) {
                    if let Some(Frame::Object(keys)) = open.last_mut() {
                        let first = key(&mut cursor)?;
                        keys.insert(first);
                    }
                    continue;
                }
            }
            None => cursor.skip()?,
        }
        if !next_value(&mut cursor, &mut open, &mut removed)? {
            cursor.end()?;
            return Ok(removed);
        }
    }
}

/// After a value: closes brackets, skips repeated members and moves to the next value; returns false if none follows.
fn next_value<'a>(
    cursor: &mut Cursor<'a>,
    open: &mut Vec<Frame<'a>>,
    removed: &mut Vec<Range<usize>>,
) -> Scan<bool> {
    while let Some(frame) = open.last_mut() {
        let byte = cursor.peek().ok_or(ScanError::Truncated)?;
        let at = cursor.pos;
        cursor.pos += 1;
        match (byte, frame) {
            (b'}', Frame::Object(_)) | (b']', Frame::Array) => drop(open.pop()),
            (b',', Frame::Array) => return Ok(true),
            (b',', Frame::Object(keys)) => {
                if keys.insert(key(cursor)?) {
                    return Ok(true);
                }
                cursor.skip()?;
                removed.push(at..cursor.pos);
            }
            _ => return Err(ScanError::Syntax),
        }
    }
    Ok(false)
}

/// A key without its escapes, and the colon behind it.
fn key<'a>(cursor: &mut Cursor<'a>) -> Scan<Cow<'a, str>> {
    cursor.peek();
    let key = match cursor.string()? {
        Text::Json { raw, len } if raw.len() == len => Cow::Borrowed(raw),
        escaped => Cow::Owned(escaped.resolve().into_owned()),
    };
    cursor.take(b':')?;
    Ok(key)
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
