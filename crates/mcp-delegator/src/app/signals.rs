//! Handles SIGINT and SIGTERM: prints a final output in the requested format and exits with the code the
//! shell expects.
//!
//! The main thread may be printing its own output at that moment. The printer accepts only one final output,
//! so exactly one of the two is printed.
//!
//! While a call waits for tasks, the first Ctrl-C only detaches: it prints the wait command and exits with 14
//! after two seconds. A second Ctrl-C within that time cancels the tasks and exits with 130. SIGTERM ends the
//! call; the tasks keep running. Ctrl-C is the ordinary end of a watch.

#![expect(clippy::disallowed_methods, reason = "a signal ends the process while the main thread is busy")]

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::{CancelReport, EngineError, TaskFiles};
use delegator_registry::Task;
use jiff::Timestamp;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{AppError, ErrorCode, ExitCode};
use crate::output::awaited_task::{AttachedTasks, Attachment};
use crate::output::call_syntax::CallSyntax;
use crate::output::command_data::Data;
use crate::output::data::acknowledgement::{Capability, ExecutionAck};
use crate::output::data::task::{UnfinishedTask, WaitedTask, WaitedTasks};
use crate::output::outcome::{CallClock, CommandOutput, IncompleteReason, WaitHint};
use crate::output::presentation::Presentation;
use crate::output::printer::Printer;
use crate::spec::{Category, CommandSpec};

/// Time in which a second Ctrl-C cancels the tasks.
const CANCEL_WINDOW: Duration = Duration::from_secs(2);

/// Prints the final output of an interrupted call.
#[derive(Debug, Clone)]
pub struct FinalOutput {
    pub printer: Arc<Printer>,
    pub presentation: Presentation,
    pub command: &'static CommandSpec,
    pub call: CallClock,
}

impl FinalOutput {
    fn print_and_exit(&self, output: CommandOutput) -> ! {
        let outcome = self.call.end(self.command, output);
        let rendered = self.presentation.render(&outcome);
        // The process exits now, so a write error cannot be reported.
        let _ = self.printer.print_final(&rendered.body);
        for remark in &rendered.remarks {
            self.printer.remark(remark);
        }
        std::process::exit(i32::from(outcome.exit().number()));
    }
}

pub fn watch(attachment: Attachment, final_output: FinalOutput) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut cancel_sender: Option<Sender<()>> = None;
        for signal in signals.forever() {
            attachment.leave_full_screen();
            match (signal, attachment.get(), &cancel_sender) {
                (SIGINT, Some(attached), None) => {
                    cancel_sender = Some(detach(final_output.clone(), attached))
                }
                // The thread that `detach` started cancels the tasks.
                (SIGINT, Some(_), Some(sender)) => drop(sender.send(())),
                (SIGTERM, Some(attached), _) => {
                    attached.erase_bar();
                    final_output.print_and_exit(terminated_error(&attached.reattach).into())
                }
                (SIGTERM, None, _) => {
                    final_output.print_and_exit(cancelled_by(ErrorCode::Terminated, "SIGTERM"))
                }
                _ if attachment.is_watch() => {
                    let _ = final_output.printer.print_final("");
                    std::process::exit(i32::from(ExitCode::Success.number()));
                }
                _ => final_output.print_and_exit(cancelled_by(ErrorCode::Interrupted, "SIGINT")),
            }
        }
    })?;
    Ok(())
}

fn cancelled_by(code: ErrorCode, signal: &str) -> CommandOutput {
    AppError::new(code, format!("The call was cancelled by {signal}.")).into()
}

fn terminated_error(reattach: &WaitHint) -> AppError {
    let continues = reattach.form("continues", "continue");
    let message = format!("The command was terminated by SIGTERM; {} {continues}.", reattach.names());
    reattach.attach_to(AppError::new(ErrorCode::Terminated, message))
}

/// Prints the wait command, then exits, or cancels the tasks if a second signal arrives in time.
fn detach(final_output: FinalOutput, attached: AttachedTasks) -> Sender<()> {
    let (cancel_sender, cancel_receiver) = channel();
    let reattach = &attached.reattach;
    let then = reattach.form("it continues.\nTo wait for it:", "they continue.\nTo wait for them:");
    let detached = reattach.suggestion(&format!("Detached from {}; {then}", reattach.names()));
    let detached = CallSyntax::Commands.sentence(&detached);
    let what = reattach.form("the task", "the tasks");
    let message = format!("{detached}\nPress Ctrl-C again within 2 s to cancel {what}.");
    attached.bar.suspend(|| final_output.printer.remark(&message));
    std::thread::spawn(move || match cancel_receiver.recv_timeout(CANCEL_WINDOW) {
        Ok(()) => {
            let error = cancel(&attached);
            attached.erase_bar();
            final_output.print_and_exit(error.into())
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            if final_output.presentation.is_for_people() {
                // The message above says it all.
                attached.erase_bar();
                let _ = final_output.printer.print_final("");
                std::process::exit(i32::from(ExitCode::Incomplete.number()));
            }
            let data = detached_data(final_output.command, &attached);
            attached.erase_bar();
            let reason = IncompleteReason::Detached(attached.reattach);
            final_output.print_and_exit(match data {
                Some(data) => CommandOutput::incomplete(data, reason),
                None => reason.to_error().into(),
            })
        }
    });
    cancel_sender
}

/// Cancels all tasks of the call; the error states what became of each.
fn cancel(attached: &AttachedTasks) -> AppError {
    let tasks = &attached.reattach.tasks;
    let message =
        match attached.engine.cancellations().cancel_all(tasks, Some("Ctrl-C"), attached.cancel_timeout) {
            Ok(results) => {
                let sentences = tasks.iter().zip(results).map(|(task, result)| cancel_result(task, result));
                sentences.collect::<Vec<_>>().join(" ")
            }
            Err(error) => format!("Could not cancel {}: {error}.", attached.reattach.names()),
        };
    let (field, ids) = attached.reattach.id_field();
    AppError::new(ErrorCode::Interrupted, message).context(field, ids)
}

fn cancel_result(task: &TaskId, result: Result<CancelReport, EngineError>) -> String {
    match result {
        Ok(report) if report.still_ending => format!("Task {task} is still being ended."),
        Ok(_) => format!("Task {task} was cancelled."),
        Err(EngineError::AlreadyEnded { state, .. }) => {
            format!("Task {task} was not cancelled: it is {}.", state.public_name())
        }
        Err(error) => format!("Task {task} could not be cancelled: {error}."),
    }
}

/// What a call that is detached from its tasks knows about them, if the command returns data about tasks.
fn detached_data(command: &CommandSpec, attached: &AttachedTasks) -> Option<Data> {
    let tasks = attached.reattach.tasks.iter().map(|id| attached.engine.results().task(id));
    let tasks: Vec<Task> = tasks.collect::<Result<_, _>>().ok()?;
    let now_ms = Timestamp::now().as_millisecond();
    let unfinished = |task: &Task| UnfinishedTask::of(task, &TaskFiles::default(), now_ms);
    match (command.category, tasks.as_slice()) {
        (Category::ExecutionAck, [task]) => Some(ExecutionAck::of(task, Capability::Foreground).into()),
        (Category::WaitResult, [task]) => Some(unfinished(task).into()),
        (Category::WaitResult, several) => {
            let tasks =
                several.iter().map(|task| WaitedTask::Unfinished(Box::new(unfinished(task)))).collect();
            Some(WaitedTasks { tasks, batch: None }.into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::{State, TaskLocation};

    use super::*;

    #[test]
    fn a_task_that_completed_first_is_not_reported_as_cancelled() {
        let id = TaskId::from_random(TaskLocation::Local, [1; 16]);
        let ended = EngineError::AlreadyEnded { task: id.clone(), state: State::Completed };
        assert_eq!(cancel_result(&id, Err(ended)), format!("Task {id} was not cancelled: it is completed."));
    }
}
