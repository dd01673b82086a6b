//! Arguments of an agent, in the order in which they are added, and values as TOML for
//! `-c key=value` of Codex.
//!
//! Codex takes a value it cannot parse as a plain string, so a badly escaped value would not fail but change
//! its meaning. Every string is therefore a basic string on one line.

use std::ffi::OsString;
use std::path::Path;

use toml_writer::{ToTomlValue, TomlStringBuilder};

#[derive(Default)]
pub(super) struct ArgList(pub(super) Vec<OsString>);

impl ArgList {
    pub(super) fn push(&mut self, args: &[&str]) {
        self.0.extend(args.iter().map(OsString::from));
    }

    /// `--flag=value`: a value that starts with a dash stays a value.
    pub(super) fn push_option(&mut self, flag: &str, value: Option<&str>) {
        self.0.extend(value.map(|value| OsString::from(format!("{flag}={value}"))));
    }

    pub(super) fn push_path(&mut self, flag: &str, path: &Path) {
        let mut arg = OsString::from(format!("{flag}="));
        arg.push(path);
        self.0.push(arg);
    }

    pub(super) fn push_setting(&mut self, key: &str, value: &str) {
        self.0.push(OsString::from("-c"));
        self.0.push(OsString::from(format!("{key}={value}")));
    }
}

pub(super) fn toml_string(text: &str) -> String {
    TomlStringBuilder::new(text).as_basic().to_toml_value()
}

pub(super) fn toml_array<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = texts.into_iter().map(toml_string).collect();
    format!("[{}]", items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(toml_string(r#"a"b\c"#), r#""a\"b\\c""#);
        assert_eq!(toml_string("a\nb\u{7f}\u{1}"), r#""a\nb\u007F\u0001""#);
        assert_eq!(toml_array(["PATH", "A B"]), r#"["PATH", "A B"]"#);
    }
}
