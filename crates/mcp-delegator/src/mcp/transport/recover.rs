//! Recovers what is possible from a message that is not valid JSON.
//!
//! A client waits for the response with the id of its request; an error response without an id leaves it
//! waiting for ever. So the id is searched even if the rest cannot be parsed: invalid UTF-8, excessive
//! nesting, a line that is too long. JavaScript serialises half a surrogate pair as a lone escape, which is
//! not valid JSON text; it is replaced by U+FFFD.

use rmcp::model::RequestId;

/// Finds the top-level id in the beginning of a message.
pub(super) fn find_id(text: &[u8]) -> Option<RequestId> {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let end = at + string_length(&text[at..])?;
                let value = text[end..].trim_ascii_start().strip_prefix(b":");
                if let (1, b"\"id\"", Some(value)) = (depth, &text[at..end], value) {
                    return parse_leading_id(value.trim_ascii_start()).map(|(id, _)| id);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Finds the id in the end of a message. Many clients write it last.
pub(super) fn find_id_at_end(text: &[u8]) -> Option<RequestId> {
    let body = text.trim_ascii_end().strip_suffix(b"}")?;
    let at = memchr::memmem::rfind(body, b"\"id\":")?;
    let is_key = at.checked_sub(1).is_some_and(|before| matches!(body[before], b',' | b'{'));
    let (id, rest) = parse_leading_id(&text[at + b"\"id\":".len()..])?;
    let ends = matches!(rest.trim_ascii(), b"}" | b",\"jsonrpc\":\"2.0\"}");
    (is_key && ends).then_some(id)
}

/// Parses an id and returns the rest. A separator must follow, or the id may be incomplete.
fn parse_leading_id(text: &[u8]) -> Option<(RequestId, &[u8])> {
    let length = match text.first()? {
        b'"' => string_length(text)?,
        _ => text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'-')?,
    };
    let (id, rest) = text.split_at(length);
    let is_whole = matches!(rest.trim_ascii_start().first(), Some(b',' | b'}'));
    let id = serde_json::from_slice(id).ok().filter(|_| is_whole)?;
    Some((id, rest))
}

/// The length of the JSON string that begins here, including its quotes.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Replaces every lone surrogate escape by U+FFFD; `None` if there is none.
pub(super) fn replace_lone_surrogates(text: &[u8]) -> Option<Vec<u8>> {
    let mut repaired = Vec::with_capacity(text.len());
    let (mut at, mut found) = (0, false);
    while let Some(byte) = text.get(at) {
        let length = match (byte, utf16_unit(text, at)) {
            (b'\\', Some(0xd800..=0xdbff)) if matches!(utf16_unit(text, at + 6), Some(0xdc00..=0xdfff)) => 12,
            (b'\\', Some(0xd800..=0xdfff)) => {
                repaired.extend_from_slice(b"\\ufffd");
                (at, found) = (at + 6, true);
                continue;
            }
            (b'\\', _) => 2.min(text.len() - at),
            _ => 1,
        };
        repaired.extend_from_slice(&text[at..at + length]);
        at += length;
    }
    found.then_some(repaired)
}

/// The code unit of a `\uXXXX` escape at this position.
fn utf16_unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn id(text: &[u8]) -> Value {
        json!(find_id(text))
    }

    #[test]
    fn id_is_found_in_unparsable_messages() {
        assert_eq!(id(b"{\"method\":\"id\",\"params\":{\"id\":3},\"id\":7,\"x\":\"\xff\"}"), 7);
        assert_eq!(id(br#"{ "id" : "a\"b", "x": [[[["#), "a\"b");
        assert_eq!(id(format!("{{\"id\":1,\"x\":{}", "[".repeat(500)).as_bytes()), 1);
        for none in [
            "",
            "{",
            "hello",
            "[{\"id\":1}]",
            "{\"id\":",
            "{\"id\":12",
            "{\"id\":1.5}",
            "{\"id\":null}",
            "}}",
        ] {
            assert_eq!(id(none.as_bytes()), Value::Null, "{none}");
        }
    }

    #[test]
    fn id_is_found_at_the_end_of_a_message() {
        let at_end = |text: &str| json!(find_id_at_end(text.as_bytes()));
        assert_eq!(at_end(r#"…"},"jsonrpc":"2.0","id":7}"#), 7);
        assert_eq!(at_end(r#"…","id":"x","jsonrpc":"2.0"}  "#), "x");
        for none in [r#"…","id":7}}"#, r#"…","id":7,"more":1}"#, r#"\"id\":7}"#, "…", ""] {
            assert_eq!(at_end(none), Value::Null, "{none}");
        }
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        let repaired = |text: &str| {
            replace_lone_surrogates(text.as_bytes()).map(|text| String::from_utf8(text).unwrap())
        };
        assert_eq!(repaired(r#""a\ud83d b""#).unwrap(), r#""a\ufffd b""#);
        assert_eq!(repaired(r#""\ude00\ud83d\ud83d\ude00""#).unwrap(), r#""\ufffd\ufffd\ud83d\ude00""#);
        for whole in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u00e9\"#, "é"] {
            assert_eq!(repaired(whole), None, "{whole}");
        }
    }
}
