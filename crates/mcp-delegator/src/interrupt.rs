//! SIGINT and SIGTERM: a last word in the form that was asked for, then the exit code the shell expects.
//!
//! The answer may be under way when the signal comes; the printer lets only the first speaker finish, so there is one
//! envelope or the other and never two halves.

#![expect(clippy::disallowed_methods, reason = "a signal ends the process wherever the main thread stands")]

use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::fault::{AppError, ErrorCode, ExitCode};
use crate::outcome::{Answer, Outcome};
use crate::presentation::Presentation;
use crate::stdout::Printer;

/// Starts to listen. `outcome_of` wraps the cancellation into the outcome of the call that is running.
pub fn watch(
    printer: Arc<Printer>,
    presentation: Presentation,
    outcome_of: impl Fn(Answer) -> Outcome + Send + 'static,
) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        let (code, exit) = match signal {
            SIGTERM => (ErrorCode::Terminated, ExitCode::Terminated),
            _ => (ErrorCode::Interrupted, ExitCode::Interrupted),
        };
        let error = AppError::new(
            code,
            format!("Cancelled by {}.", if signal == SIGTERM { "SIGTERM" } else { "SIGINT" }),
        );
        let texts = presentation.texts(&outcome_of(Answer::from(error)));
        // Whether it could be written or not: there is nobody left to tell.
        let _ = printer.answer(&texts.answer);
        for remark in &texts.remarks {
            printer.remark(remark);
        }
        std::process::exit(i32::from(exit.number()));
    })?;
    Ok(())
}
