//! Formats values as TOML for `-c key=value`.
//!
//! Codex takes a value it cannot parse as a plain string, so a badly escaped value would not fail but change
//! its meaning. Every string is therefore a basic string on one line.

use toml_writer::{ToTomlValue, TomlStringBuilder};

/// A basic string with its quotes.
pub(super) fn string(text: &str) -> String {
    TomlStringBuilder::new(text).as_basic().to_toml_value()
}

pub(super) fn array<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = texts.into_iter().map(string).collect();
    format!("[{}]", items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(string(r#"a"b\c"#), r#""a\"b\\c""#);
        assert_eq!(string("a\nb\u{7f}\u{1}"), r#""a\nb\u007F\u0001""#);
        assert_eq!(array(["PATH", "A B"]), r#"["PATH", "A B"]"#);
    }
}
