//! Finds a known value in any escaping.
//!
//! Encoders disagree about what to escape (`/` or `\/`, `é` or `\u00e9`, `&` or `\u0026`, `%2f` or `%2F` or
//! `/`), so the forms of a value are recognised instead of listed: text and needle are compared character by
//! character, and each character of the text may be literal, a JSON escape of any nesting depth, or a percent
//! escape. Runs of backslashes are compared loosely (at least as many as in the value), because each level of
//! JSON doubles them.
//!
//! In a JSON line an unescaped quote or a raw control character is part of the document, never of a value, so
//! there such a character must be escaped to match; in plain text both forms match.
//!
//! *Anchors* are the short literal prefixes by which the automaton finds where to compare.

use std::collections::BTreeSet;

use super::text::{Lookahead, MAX_BACKSLASHES, Text};

/// Maximum length of an anchor: longer ones only enlarge the automaton.
const MAX_ANCHOR_BYTES: usize = 8;
/// Minimum length before a bare escape character: shorter anchors would match everywhere.
const MIN_ANCHOR_BYTES: usize = 3;

/// Length of `needle` as written at the start of `text`, if it is there.
pub(super) fn matches(needle: &str, text: &Text<'_>, json: bool) -> Lookahead<Option<usize>> {
    let bytes = needle.as_bytes();
    let (mut needle_at, mut at) = (0, 0);
    while needle_at < bytes.len() {
        let literal = bytes[needle_at..].iter().take_while(|&&byte| byte == b'\\').count();
        // Each backslash of the value is doubled as often as the escape behind it.
        let max_written = MAX_BACKSLASHES * (literal + 1);
        let written = text.run(at, max_written + 1, |byte| byte == b'\\')?;
        if written > max_written || needle_at + literal >= bytes.len() {
            return Ok(None);
        }
        let consumed_lengths = match (literal, written) {
            (_, 0) => unescaped(&bytes[needle_at..], text, at, json)?,
            _ => escaped(&needle[needle_at..], literal, text, at + written, written, json)?,
        };
        let Some((consumed, length)) = consumed_lengths else { return Ok(None) };
        needle_at += consumed;
        at += length;
    }
    Ok(Some(at))
}

/// Number of matched bytes of the needle, and of the text.
type Consumed = Option<(usize, usize)>;

fn unescaped(needle: &[u8], text: &Text<'_>, at: usize, json: bool) -> Lookahead<Consumed> {
    let wanted = needle[0];
    let Some(found) = text.byte(at)? else { return Ok(None) };
    if found == b'%' && !(wanted == b'%' && (needle.starts_with(b"%25") || !text.starts_with(at, b"%25")?)) {
        let code = text.hex(at + 1, 2)?;
        return Ok((code == Some(u32::from(wanted))).then_some((1, 3)));
    }
    if wanted == b'\n' && found == b'\r' && !json {
        return Ok(text.starts_with(at, b"\r\n")?.then_some((1, 2)));
    }
    let structural = json && (wanted == b'"' || wanted < b' ');
    let same = found == wanted || (found == b'+' && wanted == b' ');
    Ok((same && !structural).then_some((1, 1)))
}

/// Compares the character after `written` backslashes of the text, at `at`, with the one after `literal`
/// backslashes of the needle.
fn escaped(
    needle: &str,
    literal: usize,
    text: &Text<'_>,
    at: usize,
    written: usize,
    json: bool,
) -> Lookahead<Consumed> {
    let Some(wanted) = needle[literal..].chars().next() else { return Ok(None) };
    let Some(found) = text.byte(at)? else { return Ok(None) };
    if found == b'u'
        && let Some(digits) = unicode_escape(wanted, text, at)?
    {
        return Ok(Some((literal + wanted.len_utf8(), written + digits)));
    }
    let short = short_escape(wanted);
    let matched = if short == Some(found) {
        // After an even number of backslashes the quote is unescaped and ends the string.
        written >= literal && !(json && wanted == '"' && written.is_multiple_of(2))
    } else {
        let structural = json && (wanted == '"' || wanted < ' ');
        literal > 0 && written >= literal && !structural && wanted.is_ascii() && wanted == char::from(found)
    };
    let non_ascii = literal > 0 && !wanted.is_ascii();
    if non_ascii && written >= literal {
        let mut buffer = [0; 4];
        let encoded = wanted.encode_utf8(&mut buffer).as_bytes();
        let same = text.starts_with(at, encoded)?;
        return Ok(same.then_some((literal + encoded.len(), written + encoded.len())));
    }
    Ok(matched.then_some((literal + 1, written + 1)))
}

/// Length of `wanted` as `uXXXX` after the first backslashes; astral characters need two escapes.
fn unicode_escape(wanted: char, text: &Text<'_>, at: usize) -> Lookahead<Option<usize>> {
    let mut units = [0; 2];
    let units = wanted.encode_utf16(&mut units);
    let mut length = 0;
    for (index, &unit) in units.iter().enumerate() {
        if index > 0 {
            let run = text.backslashes(at + length)?;
            if run == 0 || run > MAX_BACKSLASHES {
                return Ok(None);
            }
            length += run;
        }
        if text.byte(at + length)? != Some(b'u') || text.hex(at + length + 1, 4)? != Some(u32::from(unit)) {
            return Ok(None);
        }
        length += 5;
    }
    Ok(Some(length))
}

fn short_escape(char: char) -> Option<u8> {
    Some(match char {
        '"' => b'"',
        '/' => b'/',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        _ => return None,
    })
}

/// Literal prefixes such that every written form of `needle` starts with one of them.
///
/// Letters, digits and `-_.~` are taken literally, since no encoder escapes them.
pub(super) fn anchors(needle: &str) -> BTreeSet<Vec<u8>> {
    let mut finished = BTreeSet::new();
    let mut growing = BTreeSet::from([Vec::new()]);
    for char in needle.chars() {
        let mut longer = BTreeSet::new();
        for start in growing {
            if start.len() >= MAX_ANCHOR_BYTES {
                finished.insert(start);
                continue;
            }
            if !(char.is_ascii_alphanumeric() || "-_.~".contains(char)) {
                let escapes = if start.len() >= MIN_ANCHOR_BYTES {
                    vec![b"\\".to_vec(), b"%".to_vec()]
                } else if start.is_empty() {
                    first_escapes(char)
                } else {
                    inner_escapes(char)
                };
                finished.extend(escapes.into_iter().map(|escape| [&start[..], &escape].concat()));
            }
            match char {
                '\n' => drop(longer.insert([&start[..], b"\r\n"].concat())),
                ' ' => drop(longer.insert([&start[..], b"+"].concat())),
                _ => {}
            }
            longer.insert([&start[..], char.encode_utf8(&mut [0; 4]).as_bytes()].concat());
        }
        growing = longer;
    }
    finished.extend(growing);
    finished
}

/// Complete escapes of a first character: a single backslash would match everywhere.
fn first_escapes(char: char) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2];
    let unit = char.encode_utf16(&mut buffer)[0];
    let mut escapes = percent_starts(char);
    for digits in [format!("{unit:04x}"), format!("{unit:04X}")] {
        escapes.extend([format!("\\u{digits}"), format!("\\\\u{digits}")].map(String::into_bytes));
    }
    if let Some(letter) = short_escape(char) {
        escapes.extend([vec![b'\\', letter], vec![b'\\', b'\\', letter]]);
    }
    escapes
}

/// Starts of escapes that are long enough to be rare after one or two letters.
fn inner_escapes(char: char) -> Vec<Vec<u8>> {
    let mut escapes = percent_starts(char);
    escapes.extend([b"\\u".to_vec(), b"\\\\".to_vec()]);
    escapes.extend(short_escape(char).map(|letter| vec![b'\\', letter]));
    escapes
}

fn percent_starts(char: char) -> Vec<Vec<u8>> {
    let first = char.encode_utf8(&mut [0; 4]).as_bytes()[0];
    vec![format!("%{first:02x}").into_bytes(), format!("%{first:02X}").into_bytes()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn match_length(needle: &str, text: &str, json: bool) -> Option<usize> {
        let text = Text { bytes: text.as_bytes(), is_final: true };
        let result = matches(needle, &text, json).unwrap();
        if result.is_some() {
            let anchored = anchors(needle).iter().any(|anchor| text.bytes.starts_with(anchor));
            assert!(anchored, "no anchor of {needle:?} begins {:?}", String::from_utf8_lossy(text.bytes));
        }
        result
    }

    #[test]
    fn every_escaped_form_matches() {
        let needle = "a\"b\\c\n/é😀 &z";
        for text in [
            r#"a\"b\\c\n/é😀 &z"#,
            r#"a\"b\\c\n\/\u00e9\ud83d\ude00 \u0026z"#,
            r#"a\\\"b\\\\c\\n\/\\u00E9\\uD83D\\uDE00 &z"#,
            "a%22b%5Cc%0A%2F%C3%A9%F0%9F%98%80%20%26z",
            "a%22b%5cc%0a/%c3%a9%f0%9f%98%80+%26z",
        ] {
            assert_eq!(match_length(needle, text, true), Some(text.len()), "{text}");
            assert_eq!(match_length(needle, text, false), Some(text.len()), "{text}");
        }
        assert_eq!(match_length(needle, needle, false), Some(needle.len()));
        assert_eq!(match_length(needle, needle, true), None);
    }

    #[test]
    fn an_unescaped_quote_is_never_consumed_in_json() {
        assert_eq!(match_length(r#"ab\"cdefgh"#, r#"ab\\"cdefgh"#, true), None);
        assert_eq!(match_length(r#"ab"cdefgh"#, r#"ab\\"cdefgh"#, true), None);
        assert_eq!(match_length(r#"ab\"cdefgh"#, r#"ab\\\"cdefgh"#, true), Some(12));
    }

    #[test]
    fn an_incomplete_text_needs_more_bytes() {
        let text = Text { bytes: br"abc\", is_final: false };
        assert!(matches("abc\"defg", &text, true).is_err());
        assert_eq!(match_length("abc%20defg", "abc%20defg", false), Some(10));
        assert_eq!(match_length("abc%defgh", "abc%25defgh", false), Some(11));
    }
}
