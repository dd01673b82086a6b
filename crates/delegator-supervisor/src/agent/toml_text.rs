//! Formats values as TOML for `-c key=value`.
//!
//! Codex takes a value it cannot parse as a plain string, so a badly escaped value would not fail but change its
//! meaning. Every string is therefore a basic string on one line.

/// A basic string with its quotes.
pub(super) fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // TOML forbids these unescaped, U+007F included.
            char if char.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(char))),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
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
