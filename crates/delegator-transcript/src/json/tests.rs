//! Compares the cursor with serde_json, and with itself.

use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::text::{head_end, tail_start, unescape};
use super::*;

fn text_of(json: &str) -> String {
    Cursor::new(json).string().expect("a string").resolve().into_owned()
}

#[test]
fn escapes_are_resolved_and_their_length_is_known() {
    for json in
        [r#""""#, r#""plain""#, r#""a\nb\t\"q\"\\ \/ \u0041 \u00e9 \ud83d\ude00 \b\f\r""#, r#""é \u2028""#]
    {
        let text = Cursor::new(json).string().expect("a string");
        let reference: String = serde_json::from_str(json).expect("valid");
        assert_eq!(text.resolve(), reference);
        assert_eq!(text.len(), reference.len(), "{json}");
    }
    assert_eq!(text_of(r#""half \ud83d pair""#), "half \u{fffd} pair");
}

#[test]
fn nesting_is_bounded_by_memory_and_not_by_the_stack() {
    for depth in [1, 63, 64, 65, 128, 129, 100_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_json(&deep), "{depth}");
        let mixed = format!("{}1{}", r#"{"a":["#.repeat(depth), "]}".repeat(depth));
        assert!(is_json(&mixed), "{depth}");
        assert!(!is_json(&format!("{}1{}", r#"{"a":["#.repeat(depth), "}]".repeat(depth))), "{depth}");
        assert!(!is_json(&"[".repeat(depth)));
    }
}

#[test]
fn numbers_beyond_64_bits_stay_at_the_end_of_the_range() {
    let read = |json| Cursor::new(json).integer().expect("grammatical");
    assert_eq!(read("42"), Some(42));
    assert_eq!(read("-3.9"), Some(-3));
    assert_eq!(read("99999999999999999999999"), Some(i64::MAX));
    assert_eq!(read("-1e999"), Some(i64::MIN));
    assert_eq!(read("null"), None);
    assert_eq!(read("\"7\""), None);
}

#[test]
fn truncated_json_is_distinguished_from_invalid_json() {
    for (json, fault) in [
        ("{\"a\":1", ScanError::Truncated),
        ("{\"a\":\"x\\", ScanError::Truncated),
        ("tru", ScanError::Truncated),
        ("-", ScanError::Truncated),
        ("{a:1}", ScanError::Syntax),
        ("[1 2]", ScanError::Syntax),
        ("\"\\q\"", ScanError::Syntax),
        ("\"tab\there\"", ScanError::Syntax),
        ("01x", ScanError::Syntax),
    ] {
        let mut cursor = Cursor::new(json);
        assert_eq!(cursor.skip().and_then(|()| cursor.end()), Err(fault), "{json}");
    }
}

#[test]
fn a_cut_never_lands_inside_an_escape() {
    let raw = r"ab\ncd\\ef\u00e9\ud83d\ude00\\\\n";
    for at in 0..=raw.len() {
        let (mut head, mut tail) = (String::new(), String::new());
        unescape(&raw[..head_end(raw, at)], &mut head);
        unescape(&raw[tail_start(raw, at)..], &mut tail);
        assert!("ab\ncd\\ef\u{e9}\u{1f600}\\\\n".starts_with(&head), "{at}: {head}");
        assert!("ab\ncd\\ef\u{e9}\u{1f600}\\\\n".ends_with(&tail), "{at}: {tail}");
    }
}

/// Text that is nearly JSON more often than random bytes are.
fn nearly_json() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just("\""),
        Just("\\"),
        Just("\"a\""),
        Just("\"a\":"),
        Just("1"),
        Just("-0"),
        Just("1.5e3"),
        Just("1e"),
        Just("0"),
        Just("true"),
        Just("null"),
        Just(" "),
        Just("\t"),
        Just("\\n"),
        Just("\\u00e9"),
        Just("\\ud83d"),
        Just("é"),
        Just("\u{1}"),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn accepts_exactly_what_serde_json_accepts(text in nearly_json()) {
        prop_assert_eq!(is_json(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok());
    }

    #[test]
    fn written_strings_read_back(text in any::<String>()) {
        let mut out = Vec::new();
        write::plain_string(&mut out, &text);
        prop_assert_eq!(&serde_json::from_slice::<String>(&out).expect("valid JSON"), &text);
        prop_assert_eq!(text_of(std::str::from_utf8(&out).expect("UTF-8")), text);
    }
}
