//! SIGINT and SIGTERM: a last word in the form that was asked for, then the exit code the shell expects.
//!
//! The answer may be under way when the signal comes; the printer lets only the first speaker finish, so there is one
//! envelope or the other and never two halves.
//!
//! While a call stays with a task, the first Ctrl-C only lets go of it: it says how to come back and ends with 14 after
//! two seconds. A second one in that time cancels the task and ends with 130.

#![expect(clippy::disallowed_methods, reason = "a signal ends the process wherever the main thread stands")]

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::Engine;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::fault::{AppError, ErrorCode};
use crate::outcome::{Answer, Completion, Outcome};
use crate::presentation::Presentation;
use crate::stdout::Printer;

/// How long a second Ctrl-C means "cancel it".
const SECOND_THOUGHTS: Duration = Duration::from_secs(2);

/// The task a call stays with, while it does.
#[derive(Debug, Clone, Default)]
pub struct Attachment(Arc<Mutex<Option<Attached>>>);

#[derive(Debug, Clone)]
pub struct Attached {
    pub engine: Engine,
    pub task: TaskId,
    /// How long ending it may take.
    pub patience: Duration,
}

impl Attachment {
    pub fn set(&self, attached: Option<Attached>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = attached;
    }

    fn get(&self) -> Option<Attached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Everything a last word needs.
#[derive(Clone)]
struct LastWord<F> {
    printer: Arc<Printer>,
    presentation: Presentation,
    outcome_of: F,
}

impl<F: Fn(Answer) -> Outcome> LastWord<F> {
    fn say(&self, answer: Answer) -> ! {
        let outcome = (self.outcome_of)(answer);
        let texts = self.presentation.texts(&outcome);
        // Whether it could be written or not: there is nobody left to tell.
        let _ = self.printer.answer(&texts.answer);
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
    outcome_of: impl Fn(Answer) -> Outcome + Clone + Send + 'static,
) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let last_word = LastWord { printer, presentation, outcome_of };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut second: Option<Sender<()>> = None;
        for signal in signals.forever() {
            match (signal, attachment.get(), &second) {
                (SIGINT, Some(attached), None) => second = Some(let_go(last_word.clone(), attached)),
                // The thread that waits for it does the rest.
                (SIGINT, Some(_), Some(second)) => drop(second.send(())),
                (SIGTERM, _, _) => last_word.say(cancelled(ErrorCode::Terminated, "SIGTERM")),
                _ => last_word.say(cancelled(ErrorCode::Interrupted, "SIGINT")),
            }
        }
    })?;
    Ok(())
}

fn cancelled(code: ErrorCode, signal: &str) -> Answer {
    AppError::new(code, format!("Cancelled by {signal}.")).into()
}

/// Says how to come back, and waits for second thoughts.
fn let_go<F>(last_word: LastWord<F>, attached: Attached) -> Sender<()>
where
    F: Fn(Answer) -> Outcome + Clone + Send + 'static,
{
    let (second, again) = channel();
    let task = attached.task.clone();
    last_word.printer.remark(&format!(
        "Let go of {task}; it runs on. Come back with: mcp-delegator local wait {task}\nCtrl-C again within 2 s cancels it."
    ));
    std::thread::spawn(move || match again.recv_timeout(SECOND_THOUGHTS) {
        Ok(()) => {
            let Attached { engine, task, patience } = attached;
            let told = engine.cancel(&task, Some("Ctrl-C"), patience);
            let words = match told {
                Ok(_) => format!("Task {task} was cancelled."),
                Err(error) => format!("Task {task} could not be cancelled: {error}"),
            };
            last_word
                .say(AppError::new(ErrorCode::Interrupted, words).context("task_id", task.as_str()).into())
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            let data = json!({"task_id": attached.task.as_str(), "state": "working", "accepted": true});
            last_word.say(Answer::new(Completion::Incomplete(data)))
        }
    });
    second
}
