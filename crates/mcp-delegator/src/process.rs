//! Facts about this process: arguments, environment, directory and terminals.
//!
//! They are read once at the start and passed on as a value. No other module reads the environment.

#![expect(clippy::disallowed_methods, reason = "this is the only module that may read the environment")]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct Process {
    pub argv: Vec<OsString>,
    pub environment: BTreeMap<OsString, OsString>,
    pub current_dir: PathBuf,
    /// Path of this program.
    pub program: Option<PathBuf>,
    pub cores: usize,
    pub stdin_is_terminal: bool,
    pub stdout_is_terminal: bool,
    pub stderr_is_terminal: bool,
}

impl Process {
    pub fn current() -> Self {
        Process {
            argv: std::env::args_os().collect(),
            environment: std::env::vars_os().collect(),
            // The directory may have been deleted; commands that need it report that.
            current_dir: std::env::current_dir().unwrap_or_default(),
            program: std::env::current_exe().ok(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
        }
    }

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
