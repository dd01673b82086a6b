//! SIGINT and SIGTERM: a last word in the form that was asked for, then the exit code the shell expects.
//!
//! The answer may be under way when the signal comes; the printer lets only the first speaker finish, so there is one
//! envelope or the other and never two halves.
//!
//! While a call stays with a task, the first Ctrl-C only lets go of it: it says how to come back and ends with 14 after
//! two seconds. A second one in that time cancels the task and ends with 130. SIGTERM ends the call alone.

#![expect(clippy::disallowed_methods, reason = "a signal ends the process wherever the main thread stands")]

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use delegator_engine::Engine;
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{AppError, ErrorCode};
use crate::outcome::{CommandOutput, Completion, IncompleteReason, Outcome, WaitHint};
use crate::presentation::Presentation;
use crate::stdout::Printer;

/// How long a second Ctrl-C means "cancel it".
const CANCEL_WINDOW: Duration = Duration::from_secs(2);

/// The task a call stays with, while it does.
#[derive(Debug, Clone, Default)]
pub struct Attachment(Arc<Mutex<Option<AttachedTask>>>);

#[derive(Debug, Clone)]
pub struct AttachedTask {
    pub engine: Engine,
    pub reattach: WaitHint,
    /// How long ending it may take.
    pub cancel_timeout: Duration,
    /// What shows how far it is.
    pub bar: ProgressBar,
}

impl AttachedTask {
    /// Leaves the line to what is said next, for good: whoever waits for the task still draws.
    fn erase_bar(&self) {
        self.bar.finish_and_clear();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }
}

impl Attachment {
    pub fn set(&self, attached: Option<AttachedTask>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = attached;
    }

    fn get(&self) -> Option<AttachedTask> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Everything a last word needs.
#[derive(Clone)]
struct FinalOutput<F> {
    printer: Arc<Printer>,
    presentation: Presentation,
    to_outcome: F,
}

impl<F: Fn(CommandOutput) -> Outcome> FinalOutput<F> {
    fn print_and_exit(&self, answer: CommandOutput) -> ! {
        let outcome = (self.to_outcome)(answer);
        let texts = self.presentation.render(&outcome);
        // Whether it could be written or not: there is nobody left to tell.
        let _ = self.printer.print_final(&texts.body);
        for remark in &texts.remarks {
            self.printer.remark(remark);
        }
        std::process::exit(i32::from(outcome.exit().number()));
    }
}

/// Starts to listen. `outcome_of` wraps the cancellation into the outcome of the call that is running.
pub fn watch(
    printer: Arc<Printer>,
    presentation: Presentation,
    attachment: Attachment,
    to_outcome: impl Fn(CommandOutput) -> Outcome + Clone + Send + 'static,
) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let final_output = FinalOutput { printer, presentation, to_outcome };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut cancel_sender: Option<Sender<()>> = None;
        for signal in signals.forever() {
            match (signal, attachment.get(), &cancel_sender) {
                (SIGINT, Some(attached), None) => {
                    cancel_sender = Some(detach(final_output.clone(), attached))
                }
                // The thread that waits for it does the rest.
                (SIGINT, Some(_), Some(second)) => drop(second.send(())),
                (SIGTERM, Some(attached), _) => {
                    attached.erase_bar();
                    final_output.print_and_exit(terminated_error(&attached.reattach).into())
                }
                (SIGTERM, None, _) => {
                    final_output.print_and_exit(cancelled_by(ErrorCode::Terminated, "SIGTERM"))
                }
                _ => final_output.print_and_exit(cancelled_by(ErrorCode::Interrupted, "SIGINT")),
            }
        }
    })?;
    Ok(())
}

fn cancelled_by(code: ErrorCode, signal: &str) -> CommandOutput {
    AppError::new(code, format!("Cancelled by {signal}.")).into()
}

/// The call is ended, and not what it stayed with.
fn terminated_error(reattach: &WaitHint) -> AppError {
    let message = format!("This command was ended by SIGTERM; task {} goes on.", reattach.task);
    reattach.attach_to(AppError::new(ErrorCode::Terminated, message))
}

/// Says how to come back, and waits for second thoughts.
fn detach<F>(final_output: FinalOutput<F>, attached: AttachedTask) -> Sender<()>
where
    F: Fn(CommandOutput) -> Outcome + Clone + Send + 'static,
{
    let (cancel_sender, cancel_receiver) = channel();
    let WaitHint { task, command } = &attached.reattach;
    let message = format!(
        "Let go of {task}; it runs on. Come back with: {command}\nCtrl-C again within 2 s cancels it."
    );
    attached.bar.suspend(|| final_output.printer.remark(&message));
    std::thread::spawn(move || match cancel_receiver.recv_timeout(CANCEL_WINDOW) {
        Ok(()) => {
            let task = &attached.reattach.task;
            let result = attached.engine.cancel(task, Some("Ctrl-C"), attached.cancel_timeout);
            let message = match result {
                Ok(_) => format!("Task {task} was cancelled."),
                Err(error) => format!("Task {task} could not be cancelled: {error}"),
            };
            attached.erase_bar();
            final_output.print_and_exit(
                AppError::new(ErrorCode::Interrupted, message).context("task_id", task.as_str()).into(),
            )
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            let task = attached.reattach.task.as_str();
            let data = json!({"task_id": task, "state": "working", "accepted": true});
            attached.erase_bar();
            final_output.print_and_exit(CommandOutput::new(Completion::Incomplete(
                data,
                IncompleteReason::Detached(attached.reattach),
            )))
        }
    });
    cancel_sender
}
