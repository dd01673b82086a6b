//! Signals: trapping them, and dying from them.

#![expect(clippy::disallowed_methods, reason = "a trapped signal may end the agent at any point")]

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getpid, kill_process, setrlimit};
use signal_hook::consts::FORBIDDEN;
use signal_hook::iterator::Signals;

use super::{RunEnd, Runner, StepResult, pace, script_error};
use crate::script::{SignalName, Trap};

impl Runner {
    /// Traps signals; effective as soon as this returns. Children do not inherit the traps.
    pub(super) fn trap(&mut self, trap: &Trap) -> StepResult {
        if let Some(signal) = trap.signals.iter().find(|signal| FORBIDDEN.contains(&signal.number())) {
            return Err(RunEnd::ScriptError(format!("SIG{} cannot be caught", signal.name())));
        }
        let numbers: Vec<i32> = trap.signals.iter().map(|signal| signal.number()).collect();
        let mut signals = Signals::new(numbers).map_err(script_error("cannot catch signals"))?;
        let log = trap.log.as_ref().map(|log| self.path(log));
        let (started_at, exit, exit_delay) =
            (self.started_at, trap.exit, Duration::from_millis(trap.exit_after_ms));
        let handle_signals = move || {
            for number in signals.forever() {
                let name = SignalName::from_number(number).map_or("?", SignalName::name);
                if let Some(log) = &log {
                    let line = format!("{name} {}\n", started_at.elapsed().as_millis());
                    // On an error the line is missing, which the test that reads the log will notice.
                    let file = OpenOptions::new().create(true).append(true).open(log);
                    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
                }
                if let Some(code) = exit {
                    pace::sleep(exit_delay);
                    std::process::exit(i32::from(code));
                }
            }
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(handle_signals)
            .map_err(script_error("cannot start a thread"))?;
        Ok(())
    }
}

/// Sends this process a signal; returns only if the signal is not fatal.
pub(super) fn raise(signal: SignalName) -> StepResult {
    // Prevents core files in test directories; if that fails, a core file does no harm.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    kill_process(getpid(), signal.signal())
        .map_err(|error| RunEnd::ScriptError(format!("cannot raise SIG{}: {error}", signal.name())))?;
    if !signal.is_fatal() {
        return Ok(());
    }
    // Still running: the Rust runtime ignores PIPE and handles SEGV and BUS, or a step has set a trap. A shell that
    // replaces this process does neither.
    let error = Command::new("/bin/sh").args(["-c", "kill -$0 $$", &signal.number().to_string()]).exec();
    Err(RunEnd::ScriptError(format!("cannot die of SIG{}: {error}", signal.name())))
}
