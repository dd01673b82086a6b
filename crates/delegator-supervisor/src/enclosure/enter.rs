//! The internal mode that encloses itself and then becomes the agent.
//!
//! Everything happens in one process with one thread: open the writable paths, apply the rules, execute.
//! Nothing of the agent runs before the rules apply.

#![expect(clippy::disallowed_methods, reason = "this module becomes the agent that the supervisor starts")]

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use super::arguments::{self, EnclosedProgram, StartFailure};
use super::mechanism::Mechanism;
use super::path_rules::WritablePath;
use super::{bubblewrap, capabilities, landlock_rules};
use crate::poll_fds::retry_while_busy;

/// Runs the internal mode with the arguments after its name. Returns only if the agent could not be started.
pub fn enter(args: &[OsString]) -> ExitCode {
    let failure = match arguments::decode(args) {
        Some(request) => start(&request),
        None => StartFailure::NotEnclosed("the arguments are not valid".to_owned()),
    };
    // Without a reader of standard error the exit code still tells.
    let _ = writeln!(io::stderr(), "{failure}");
    ExitCode::from(failure.exit_code())
}

fn start(request: &EnclosedProgram) -> StartFailure {
    let EnclosedProgram { mechanism, paths, program, args } = request;
    let open = |path: &WritablePath| {
        path.open().map_err(|error| StartFailure::NotEnclosed(format!("{}: {error}", path.path.display())))
    };
    let opened: Vec<OwnedFd> = match paths.writable.iter().map(open).collect() {
        Ok(opened) => opened,
        Err(failure) => return failure,
    };
    match mechanism {
        Mechanism::Landlock => {
            let restricted = landlock_rules::restrict(&opened);
            match restricted.and_then(|()| Ok(capabilities::drop_others().map_err(io::Error::from)?)) {
                Ok(()) => execute(program, args),
                Err(problem) => StartFailure::NotEnclosed(problem.to_string()),
            }
        }
        Mechanism::Bubblewrap { program: bwrap } => execute(bwrap, &bubblewrap::args(paths, program, args)),
    }
}

fn execute(program: &Path, args: &[OsString]) -> StartFailure {
    let replaced =
        retry_while_busy(None, || -> io::Result<Infallible> { Err(Command::new(program).args(args).exec()) });
    match replaced {
        Err(error) => StartFailure::NotStarted(error.to_string()),
    }
}
