//! The process context of the agent: its arguments, variables and streams.
//!
//! The streams are owned: when the agent closes one, the process at the other end sees the end of file. Therefore
//! the standard descriptors 0 and 1 are replaced by `/dev/null`, and children get their streams explicitly.

#![expect(
    clippy::disallowed_methods,
    reason = "the only place where the agent reads its process environment"
)]

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio;

/// The first descriptor above the standard streams.
const MIN_DUPLICATE_FD: i32 = 3;

/// Everything the agent gets from its process.
#[derive(Debug)]
pub struct ProcessContext {
    /// Program name and arguments.
    pub argv: Vec<OsString>,
    /// Environment variables, also of its commands.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; `None` if it was deleted.
    pub cwd: Option<PathBuf>,
    /// Source of the prompt.
    pub stdin: File,
    /// Destination of the events.
    pub stdout: File,
    /// Destination of error messages.
    pub stderr: File,
}

impl ProcessContext {
    /// The context of this process, with these arguments. Afterwards stdin and stdout of the process are
    /// `/dev/null`.
    pub fn from_current_process(argv: Vec<OsString>) -> io::Result<Self> {
        let dev_null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        let stdin = fcntl_dupfd_cloexec(stdio::stdin(), MIN_DUPLICATE_FD)?;
        let stdout = fcntl_dupfd_cloexec(stdio::stdout(), MIN_DUPLICATE_FD)?;
        let stderr = fcntl_dupfd_cloexec(stdio::stderr(), MIN_DUPLICATE_FD)?;
        stdio::dup2_stdin(&dev_null)?;
        stdio::dup2_stdout(&dev_null)?;
        Ok(Self {
            argv,
            env: std::env::vars_os().collect(),
            cwd: std::env::current_dir().ok(),
            stdin: stdin.into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
        })
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&OsString> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}
