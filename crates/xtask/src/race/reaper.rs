//! A parent that adopts every process its server leaves behind, so that the processor time of all of them can be read.
//!
//! The kernel adds the time of a reaped child to its parent. Supervisors detach from the server; below a subreaper they
//! are reparented to it instead of to init, and their time is added to it.

#![expect(clippy::disallowed_methods, reason = "the reaper starts the server it is given")]

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use rustix::io::Errno;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};

/// The first argument that makes a program the reaper of the command that follows.
pub(crate) const REAP: &str = "reap";

/// Starts the command with our own stdin and stdout, and reaps until no process is left.
pub(crate) fn reap(command: &[OsString]) -> ExitCode {
    let Some((program, args)) = command.split_first() else { return ExitCode::FAILURE };
    if set_child_subreaper(Some(getpid())).is_err() {
        return ExitCode::FAILURE;
    }
    // Reaped below, like every other child.
    let Ok(_child) = Command::new(program).args(args).spawn() else { return ExitCode::FAILURE };
    loop {
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return ExitCode::SUCCESS,
        }
    }
}
