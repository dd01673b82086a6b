//! The process around the agent: its words, its variables, its streams.
//!
//! The streams are owned: when the agent closes one, it is closed, for whoever holds the other end. So the standard
//! descriptors 0 and 1 are given up for `/dev/null` when they are taken, and children get theirs explicitly.

#![expect(clippy::disallowed_methods, reason = "here the agent takes its environment from the process, once")]

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio;

/// Above the standard descriptors.
const MIN_DUPLICATE_FD: i32 = 3;

/// All an agent has of the world.
#[derive(Debug)]
pub struct ProcessContext {
    /// The program's name and its arguments.
    pub argv: Vec<OsString>,
    /// Its variables; its commands get them too.
    pub env: Vec<(OsString, OsString)>,
    /// Where it was started; nothing if that directory is gone.
    pub cwd: Option<PathBuf>,
    /// Where the prompt comes from.
    pub stdin: File,
    /// Where the events go.
    pub stdout: File,
    /// Where complaints go.
    pub stderr: File,
}

impl ProcessContext {
    /// Those of this process, called with these words. The process has no stdin and no stdout afterwards.
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

    /// The value of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsString> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}
