//! The user's pager, for long text on a terminal.
//!
//! `PAGER` is run by a shell, as git and man do; without it, `less` if there is one. If the pager cannot be
//! run, the caller prints the text itself.

#![expect(
    clippy::disallowed_methods,
    reason = "the pager is the user's own program, run only on their terminal"
)]

use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use crate::spec::process::Process;

/// Quits if all fits on one screen (F), shows colours (R), leaves the text on the screen (X).
const LESS_OPTIONS: &str = "FRX";
const DEFAULT: &str = "command -v less >/dev/null 2>&1 && exec less -FRX; exec cat";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pager {
    command: String,
    /// The user has not set the options of `less`.
    sets_options: bool,
}

impl Pager {
    /// The pager of a process whose output a person reads; `None` if the user wants none.
    pub fn find(process: &Process) -> Option<Pager> {
        if process.is_unattended() {
            return None;
        }
        let sets_options = !process.environment.contains_key(OsStr::new("LESS"));
        let command = match process.environment.get(OsStr::new("PAGER")) {
            Some(command) => command.to_str()?.trim(),
            None => DEFAULT,
        };
        (!matches!(command, "" | "cat")).then(|| Pager { command: command.to_owned(), sets_options })
    }

    /// Shows the text and waits for the pager to end. Returns false if it could not be run and the text was
    /// not shown.
    pub(super) fn show(&self, text: &str) -> io::Result<bool> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&self.command).stdin(Stdio::piped());
        if self.sets_options {
            command.env("LESS", LESS_OPTIONS);
        }
        let Ok(mut child) = command.spawn() else { return Ok(false) };
        let written = match child.stdin.take() {
            Some(mut stdin) => stdin.write_all(text.as_bytes()),
            None => Ok(()),
        };
        // A pager that ends before it has read all is not an error.
        written.or_else(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error),
        })?;
        let status = child.wait()?;
        // The codes with which a shell reports a command that it cannot run.
        Ok(!matches!(status.code(), Some(126 | 127)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pager(command: &str) -> Pager {
        Pager { command: command.to_owned(), sets_options: true }
    }

    #[test]
    fn the_text_goes_to_the_users_command() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("shown");
        let command = format!("{{ echo $LESS; cat; }} > {}", file.display());
        assert!(pager(&command).show("text\n").unwrap());
        assert_eq!(std::fs::read_to_string(file).unwrap(), "FRX\ntext\n");
    }

    #[test]
    fn a_pager_that_ends_early_is_no_error_and_one_that_is_missing_shows_nothing() {
        let long = "line\n".repeat(100_000);
        assert!(pager("exec true").show(&long).unwrap());
        assert!(!pager("/nowhere/pager 2>/dev/null").show(&long).unwrap());
    }
}
