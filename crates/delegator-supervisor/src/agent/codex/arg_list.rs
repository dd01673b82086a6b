//! Arguments of Codex in the order in which they are added.

use std::ffi::OsString;
use std::path::Path;

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
