//! Reads the process that this program runs in, once.

#![expect(clippy::disallowed_methods, reason = "only this module reads the environment")]

use std::io::IsTerminal;

use crate::spec::process::Process;

pub fn current_process() -> Process {
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
