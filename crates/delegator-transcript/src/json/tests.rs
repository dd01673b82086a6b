//! Tests of what typed access tolerates, and of escaped text.

use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::text::{head_end, tail_start, unescape};
use super::*;

/// A JSON string, read as a line is read.
fn string(json: &str) -> Text<'_> {
    Value::Whole(json, Scanner::new(json).skip().expect("JSON")).text().expect("a string")
}

fn text_of(json: &str) -> String {
    string(json).resolve().into_owned()
}

/// How a text ends that begins with `{"key":` and this JSON.
fn ending_of(json: &str) -> Ending {
    Object::read(&format!("{{\"key\":{json}")).ending
}

#[test]
fn escapes_are_resolved_and_their_length_is_known() {
    for json in
        [r#""""#, r#""plain""#, r#""a\nb\t\"q\"\\ \/ \u0041 \u00e9 \ud83d\ude00 \b\f\r""#, r#""é \u2028""#]
    {
        let text = string(json);
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
        assert_eq!(ending_of(&format!("{deep}}}")), Ending::Complete, "{depth}");
        let mixed = format!("{}1{}", r#"{"a":["#.repeat(depth), "]}".repeat(depth));
        assert!(is_json(&mixed), "{depth}");
        assert_eq!(Object::read(&mixed).ending, Ending::Complete, "{depth}");
        assert!(!is_json(&format!("{}1{}", r#"{"a":["#.repeat(depth), "}]".repeat(depth))), "{depth}");
        assert!(!is_json(&"[".repeat(depth)));
    }
}

#[test]
fn numbers_beyond_64_bits_stay_at_the_end_of_the_range() {
    let read = |json| Value::Whole(json, 0).integer();
    assert_eq!(read("42"), Some(42));
    assert_eq!(read("-3.9"), Some(-3));
    assert_eq!(read("99999999999999999999999"), Some(i64::MAX));
    assert_eq!(read("-1e999"), Some(i64::MIN));
    assert_eq!(read("null"), None);
    assert_eq!(read("\"7\""), None);
    assert_eq!(ending_of("-1e999}"), Ending::Complete);
}

#[test]
fn truncated_json_is_distinguished_from_invalid_json() {
    for (json, ending) in [
        ("{\"a\":1", Ending::Truncated),
        ("{\"a\":\"x\\", Ending::Truncated),
        ("\"\\u00", Ending::Truncated),
        ("tru", Ending::Truncated),
        ("-", Ending::Truncated),
        ("1.", Ending::Truncated),
        ("1e+", Ending::Truncated),
        ("", Ending::Truncated),
        ("{a:1}", Ending::Invalid),
        ("[1 2]", Ending::Invalid),
        ("\"\\q\"", Ending::Invalid),
        ("\"tab\there\"", Ending::Invalid),
        ("01x", Ending::Invalid),
        ("1}}", Ending::Invalid),
    ] {
        assert_eq!(ending_of(json), ending, "{json}");
    }
}

#[test]
fn the_value_in_which_a_text_ends_is_available() {
    let text = |json: &str| Object::read(json).text("b").map(|text| text.resolve().into_owned());
    assert_eq!(text(r#"{"a":1,"b" : "begin\u00"#).as_deref(), Some("begin"));
    assert_eq!(text(r#"{"a":1,"b""#), None);
    let mut item = None;
    Object::read_line(r#"{"b":null,"item":{"id":"i","text":"begin"#, Some(&mut item));
    let item = item.expect("an item");
    assert_eq!((item.text("id").is_some(), item.text("text").is_some()), (true, true));
    let nested = Object::read(r#"{"a":{"b":[1,"x"#);
    let nested = nested.object("a").expect("an object");
    assert_eq!(nested.list(&["b"], Value::integer), [1]);
}

#[test]
fn a_cut_never_lands_inside_an_escape() {
    let raw = r"ab\ncd\\ef\u00e9\ud83d\ude00\\\\n";
    for at in 0..=raw.len() {
        let (head, tail) = (unescape(&raw[..head_end(raw, at)]), unescape(&raw[tail_start(raw, at)..]));
        assert!("ab\ncd\\ef\u{e9}\u{1f600}\\\\n".starts_with(&head), "{at}: {head}");
        assert!("ab\ncd\\ef\u{e9}\u{1f600}\\\\n".ends_with(&tail), "{at}: {tail}");
    }
}

#[test]
fn strings_are_read_alike_wherever_a_block_ends() {
    let pieces = [
        "\\n",
        "\\\"",
        "\\\\",
        "\\\\\\n",
        "\\\\\\\\",
        "\\/",
        "\\b",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\"",
        "\\",
        "\\x",
        "\\u12",
        "\u{1}",
        "\n",
        "é",
        "\u{1f600}",
    ];
    for piece in pieces {
        for before in 0..140 {
            for after in [0, 1, 70] {
                let json = format!("\"{}{piece}{}\"", "a".repeat(before), "b".repeat(after));
                match serde_json::from_str::<String>(&json) {
                    Ok(reference) => {
                        assert_eq!(text_of(&json), reference, "{json}");
                        assert_eq!(string(&json).len(), reference.len(), "{json}");
                    }
                    Err(_) => assert!(!is_json(&json), "{json}"),
                }
            }
        }
    }
}

/// Text that is nearly JSON more often than random bytes are.
fn nearly_json() -> impl Strategy<Value = String> {
    let pieces = [
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\"a\"", "\"a\":", "1", "-0", "1.5e3", "1e", "0", "true",
        "null", " ", "\t", "\\n", "\\u00e9", "\\ud83d", "é", "\u{1}",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..12)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn accepts_exactly_what_serde_json_accepts(text in nearly_json()) {
        let accepted = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        prop_assert_eq!(is_json(&text), accepted);
        for object in [format!("{{\"a\":{text}}}"), format!("{{\"item\":{{\"a\":{text}}}}}")] {
            let accepted = serde_json::from_str::<IgnoredAny>(&object).is_ok();
            prop_assert_eq!(Object::read_line(&object, Some(&mut None)).ending == Ending::Complete, accepted, "{}", object);
        }
    }

    #[test]
    fn long_strings_are_read_as_serde_json_reads_them(pieces in proptest::collection::vec(
        proptest::sample::select(vec!["a", "word and word", "\\n", "\\\"", "\\\\", "\\t", "\\/", "\\u001b", "é", "nrt"]), 0..120),
    ) {
        let json = format!("\"{}\"", pieces.concat());
        let reference: String = serde_json::from_str(&json).expect("valid");
        prop_assert_eq!(string(&json).len(), reference.len());
        prop_assert_eq!(text_of(&json), reference);
    }

    #[test]
    fn written_strings_read_back(text in any::<String>()) {
        let mut out = Vec::new();
        write::plain_string(&mut out, &text);
        prop_assert_eq!(&serde_json::from_slice::<String>(&out).expect("valid JSON"), &text);
        prop_assert_eq!(text_of(std::str::from_utf8(&out).expect("UTF-8")), text);
    }

    #[test]
    fn the_length_of_a_text_is_that_of_the_resolved_text(pieces in proptest::collection::vec(
        proptest::sample::select(vec!["a", "\\n", "\\u001b", "\\u00e9", "\\ud83d", "\\ude00", "\\u20ac", "\\\\", "u"]), 0..10), repeats in 0..2_usize,
    ) {
        for pieces in [&pieces, &pieces.iter().copied().filter(|piece| *piece != "\\\\").collect()] {
            let json = format!("\"{}\"", pieces.concat().repeat(1 + repeats * 100));
            prop_assert_eq!(string(&json).len(), string(&json).resolve().len(), "{}", json);
        }
    }
}
