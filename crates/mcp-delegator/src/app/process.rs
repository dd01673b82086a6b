//! Reads the process that this program runs in, once.

#![expect(clippy::disallowed_methods, reason = "only this module reads the environment")]

use std::io::IsTerminal;

use rustix::termios::tcgetwinsize;

use crate::spec::process::Process;

pub fn current_process() -> Process {
    Process {
        argv: std::env::args_os().collect(),
        environment: std::env::vars_os().collect(),
        // The directory may have been deleted; commands that need it report that.
        current_dir: std::env::current_dir().unwrap_or_default(),
        program: std::env::current_exe().ok(),
        stdin_is_terminal: std::io::stdin().is_terminal(),
        stdout_is_terminal: std::io::stdout().is_terminal(),
        stderr_is_terminal: std::io::stderr().is_terminal(),
        terminal_columns: terminal_columns(),
    }
}

/// The width of the terminal of stdout or, if that is redirected, of stderr.
fn terminal_columns() -> usize {
    const DEFAULT: usize = 80;
    let sizes = [tcgetwinsize(std::io::stdout()), tcgetwinsize(std::io::stderr())];
    let columns =
        sizes.into_iter().flatten().map(|size| usize::from(size.ws_col)).find(|columns| *columns > 0);
    let in_variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    columns.or_else(in_variable).unwrap_or(DEFAULT)
}
