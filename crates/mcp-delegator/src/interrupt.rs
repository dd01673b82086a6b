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

use crate::fault::{AppError, ErrorCode};
use crate::outcome::{Answer, Completion, Outcome, Parting, WayBack};
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
    pub way_back: WayBack,
    /// How long ending it may take.
    pub patience: Duration,
    /// What shows how far it is.
    pub bar: ProgressBar,
}

impl Attached {
    /// Leaves the line to what is said next, for good: whoever waits for the task still draws.
    fn erase_bar(&self) {
        self.bar.finish_and_clear();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }
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
                (SIGTERM, Some(attached), _) => {
                    attached.erase_bar();
                    last_word.say(ended_alone(&attached.way_back).into())
                }
                (SIGTERM, None, _) => last_word.say(cancelled(ErrorCode::Terminated, "SIGTERM")),
                _ => last_word.say(cancelled(ErrorCode::Interrupted, "SIGINT")),
            }
        }
    })?;
    Ok(())
}

fn cancelled(code: ErrorCode, signal: &str) -> Answer {
    AppError::new(code, format!("Cancelled by {signal}.")).into()
}

/// The call is ended, and not what it stayed with.
fn ended_alone(way_back: &WayBack) -> AppError {
    let words = format!("This command was ended by SIGTERM; task {} goes on.", way_back.task);
    way_back.told_with(AppError::new(ErrorCode::Terminated, words))
}

/// Says how to come back, and waits for second thoughts.
fn let_go<F>(last_word: LastWord<F>, attached: Attached) -> Sender<()>
where
    F: Fn(Answer) -> Outcome + Clone + Send + 'static,
{
    let (second, again) = channel();
    let WayBack { task, command } = &attached.way_back;
    let words = format!(
        "Let go of {task}; it runs on. Come back with: {command}\nCtrl-C again within 2 s cancels it."
    );
    attached.bar.suspend(|| last_word.printer.remark(&words));
    std::thread::spawn(move || match again.recv_timeout(SECOND_THOUGHTS) {
        Ok(()) => {
            let task = &attached.way_back.task;
            let told = attached.engine.cancel(task, Some("Ctrl-C"), attached.patience);
            let words = match told {
                Ok(_) => format!("Task {task} was cancelled."),
                Err(error) => format!("Task {task} could not be cancelled: {error}"),
            };
            attached.erase_bar();
            last_word
                .say(AppError::new(ErrorCode::Interrupted, words).context("task_id", task.as_str()).into())
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            let task = attached.way_back.task.as_str();
            let data = json!({"task_id": task, "state": "working", "accepted": true});
            attached.erase_bar();
            last_word.say(Answer::new(Completion::Incomplete(data, Parting::LetGo(attached.way_back))))
        }
    });
    second
}
