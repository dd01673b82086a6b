//! Every way to write a value, and what an edit leaves as it is.

use proptest::prelude::*;

use super::{contains, set, unset};

fn path(dotted: &str) -> Vec<String> {
    dotted.split('.').map(str::to_owned).collect()
}

fn set_to(text: &str, key: &str, value: &str) -> String {
    set(text, &path(key), value).unwrap_or_else(|| panic!("{key} in {text:?}"))
}

fn without(text: &str, key: &str) -> String {
    unset(text, &path(key)).unwrap_or_else(|| panic!("{key} in {text:?}"))
}

#[test]
fn a_value_is_replaced_in_its_place_with_its_comment() {
    let text = "# mine\r\na = 1 # one\r\n\r\n[b]\r\nc = [\r\n  1, # first\r\n]\r\n";
    assert_eq!(set_to(text, "a", "2"), text.replace("a = 1", "a = 2"));
    assert_eq!(set_to(text, "b.c", "[3]"), "# mine\r\na = 1 # one\r\n\r\n[b]\r\nc = [3]\r\n");
    assert_eq!(set_to("b = { c = 1, d = 2 }", "b.c", "'x'"), "b = { c = 'x', d = 2 }");
    assert_eq!(set_to("b.c = 1\n", "b.c", "2"), "b.c = 2\n");
}

#[test]
fn a_new_value_comes_after_the_others_of_its_section() {
    for (text, key, expected) in [
        ("", "a", "a = 0\n"),
        ("# only a comment", "a", "# only a comment\na = 0\n"),
        ("b = 1\n", "a", "b = 1\na = 0\n"),
        ("b = 1\r\n[c]\r\nd = 1\r\n", "a", "b = 1\r\na = 0\r\n[c]\r\nd = 1\r\n"),
        ("# file\n\n# section\n[c]\nd = 1\n", "a", "# file\n\na = 0\n\n# section\n[c]\nd = 1\n"),
        ("[c]\nd = 1\n", "a", "a = 0\n\n[c]\nd = 1\n"),
        ("", "c.d", "[c]\nd = 0\n"),
        ("a = 1", "c.d", "a = 1\n\n[c]\nd = 0\n"),
        ("[c]\ne = 1 # e\n\n[f]\ng = 1\n", "c.d", "[c]\ne = 1 # e\nd = 0\n\n[f]\ng = 1\n"),
        ("[c] # c\n", "c.d", "[c] # c\nd = 0\n"),
        ("c.e = 1\nb = 1\n", "c.d", "c.e = 1\nc.d = 0\nb = 1\n"),
        ("c = { e = 1 }\n", "c.d", "c = { e = 1, d = 0 }\n"),
        ("c = {}\n", "c.d", "c = { d = 0 }\n"),
        ("[c.x]\ne = 1\n", "c.y.d", "[c.x]\ne = 1\n\n[c.y]\nd = 0\n"),
        ("c.x.e = 1\n", "c.y.d", "c.x.e = 1\n\n[c.y]\nd = 0\n"),
    ] {
        assert_eq!(set_to(text, key, "0"), expected, "{key} in {text:?}");
    }
    let quoted = set("", &["r".to_owned(), "/my path".to_owned(), "s".to_owned()], "1");
    assert_eq!(quoted.as_deref(), Some("[r.\"/my path\"]\ns = 1\n"));
}

#[test]
fn a_value_is_removed_with_its_line_only() {
    for (text, key, expected) in [
        ("# about a\na = 1 # one\nb = 2\n", "a", "# about a\nb = 2\n"),
        ("b = 2\r\na = 1", "a", "b = 2\r\n"),
        ("[c]\nd = [\n 1,\n]\ne = 2\n", "c.d", "[c]\ne = 2\n"),
        ("[c]\nd = 1\n", "c.d", "[c]\n"),
        ("c.d = 1\n", "c.d", ""),
        ("c = { d = 1, e = 2 }\n", "c.d", "c = { e = 2 }\n"),
        ("c = { d = 1, e = 2 }\n", "c.e", "c = { d = 1 }\n"),
        ("[c]\nd = 1\n# next\n[e]\nf = 1\n", "c", "# next\n[e]\nf = 1\n"),
        ("[c.x]\nd = 1\n\n[c.y]\nd = 1\n", "c.x", "\n[c.y]\nd = 1\n"),
    ] {
        assert_eq!(contains(text, &path(key)), Some(true), "{key} in {text:?}");
        assert_eq!(without(text, key), expected, "{key} in {text:?}");
    }
    assert_eq!(unset("a = 1\n", &path("b")), None);
}

#[test]
fn a_section_is_replaced_by_a_value() {
    assert_eq!(set_to("[c]\nd = 1\n\n[e]\nf = 1\n", "c", "{ g = 1 }"), "c = { g = 1 }\n\n\n[e]\nf = 1\n");
}

#[test]
fn nothing_is_set_where_there_is_no_place() {
    assert_eq!(set("a = 1\n", &path("a.b"), "1"), None);
    assert_eq!(set("a = ", &path("b"), "1"), None);
    assert_eq!(set("", &path("a"), "1\nb = 2"), None);
}

proptest! {
    /// Whatever the file is: an edit has the new value and the old ones, and its inverse restores them.
    #[test]
    fn every_edit_of_a_valid_file_keeps_the_other_values(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "a = 1", "b.c = 2", "d = { e = 3 }", "f = [\n 4,\n]", "# note", "", "[g]", "[h.i]", "j = 'x' # y",
            ]),
            0..8,
        ),
        key in prop::sample::select(vec!["a", "b.c", "b.z", "d.e", "d.z", "g.a", "h.i.a", "h.z", "z", "y.z"]),
    ) {
        let text = lines.join("\n");
        let parsed: Result<toml::Table, _> = toml::from_str(&text);
        prop_assume!(parsed.is_ok());
        let Some(edited) = set(&text, &path(key), "'new'") else { return Ok(()) };
        prop_assert_eq!(contains(&edited, &path(key)), Some(true));
        for line in lines.iter().filter(|line| line.starts_with('#')) {
            prop_assert!(edited.contains(line), "{edited}");
        }
        prop_assert!(unset(&edited, &path(key)).is_some(), "{edited}");
    }
}
