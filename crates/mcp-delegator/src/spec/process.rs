//! The process this program runs in, as a value: arguments, environment variables, directory, terminals.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct Process {
    pub argv: Vec<OsString>,
    pub environment: BTreeMap<OsString, OsString>,
    pub current_dir: PathBuf,
    pub program: Option<PathBuf>,
    pub stdin_is_terminal: bool,
    pub stdout_is_terminal: bool,
    pub stderr_is_terminal: bool,
    pub terminal_columns: usize,
}

impl Process {
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment
            .get(OsStr::new(name))
            .and_then(|value| value.to_str())
            .filter(|value| !value.is_empty())
    }

    /// No person reads the output: it goes to a pipe or file, or this is a CI job (even with a terminal).
    pub fn is_unattended(&self) -> bool {
        !self.stdout_is_terminal || self.variable("CI").is_some_and(|ci| ci != "false" && ci != "0")
    }
}
