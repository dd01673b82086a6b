//! Decides how a run ended: a pure function of our own actions, the exit status and the agent's output.
//!
//! In this order: why the supervisor ended it; a signal that the supervisor did not send; the agent's report of its
//! turn; its exit code; its last error message. A run is completed only if its turn is and the exit code is 0. Refused
//! calls are warnings: the agent knows about them and continues.

mod classify;
mod signals;
mod stderr;
mod verification;

use delegator_domain::task::{ExitStatus, FailureKind, LimitKind, TaskEnd};
use delegator_transcript::{Report, StreamOutcome};

pub use classify::{MessageClass, classify, retry_time};
pub use signals::signal_name;
pub use stderr::{RefusedCalls, StderrDigest};
pub(crate) use verification::verification_outcome;

const NO_SANDBOX_HELPER: &str = "CODEX_HOME lies below the temporary directory, where codex creates no sandbox helper, \
                         so sandboxed commands fail silently; move CODEX_HOME";

/// Why the supervisor ended the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    Cancelled {
        reason: Option<String>,
    },
    Limit(LimitKind),
    TooManyProcesses {
        count: usize,
    },
    WrongThread {
        expected: String,
        announced: String,
    },
    /// An error of the supervisor itself.
    Internal {
        message: String,
    },
}

/// The facts a verdict is derived from.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub cause: Option<&'a Cause>,
    /// `None` if it could not be killed.
    pub exit: Option<ExitStatus>,
    pub report: &'a Report,
    pub stderr: &'a StderrDigest,
    /// The thread it had to resume.
    pub expected_thread: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub end: TaskEnd,
    pub refused: RefusedCalls,
    pub warnings: Vec<String>,
}

pub fn verdict(facts: &Facts<'_>) -> Verdict {
    Verdict { end: end(facts), refused: facts.stderr.refused_calls(), warnings: warnings(facts) }
}

fn end(facts: &Facts<'_>) -> TaskEnd {
    if let Some(cause) = facts.cause {
        return ended_by_us(cause);
    }
    if let (Some(expected), Some(announced)) = (facts.expected_thread, facts.report.thread_id.as_deref())
        && expected != announced
    {
        return wrong_thread(expected, announced);
    }
    let code = match facts.exit {
        Some(ExitStatus::Signal(signal)) => return killed_by_signal(signal),
        Some(ExitStatus::Code(code)) => code,
        None => return failed(FailureKind::Internal, "the exit status of the agent is unknown".to_owned()),
    };
    match &facts.report.outcome {
        StreamOutcome::Failed { message } => failure_from_message(message, FailureKind::AgentError),
        StreamOutcome::Completed if code == 0 && sandbox_blocked_all_work(facts) => {
            failed(FailureKind::Sandbox, format!("no change could be applied: {NO_SANDBOX_HELPER}"))
        }
        StreamOutcome::Completed | StreamOutcome::NotAnnounced if code == 0 => TaskEnd::Completed,
        StreamOutcome::Interrupted if code == 0 => no_terminal_event(facts),
        StreamOutcome::Completed | StreamOutcome::NotAnnounced | StreamOutcome::Interrupted => {
            failure_from_exit_code(code, facts)
        }
    }
}

/// Without its helper Codex's sandbox fails every command silently and every patch with an item, yet the turn succeeds.
fn sandbox_blocked_all_work(facts: &Facts<'_>) -> bool {
    let Report { files, commands, .. } = facts.report;
    let did_nothing = files.added.is_empty() && files.modified.is_empty() && files.deleted.is_empty();
    facts.stderr.has_no_sandbox_helper() && files.failed_patches > 0 && did_nothing && commands.finished == 0
}

fn failed(kind: FailureKind, message: String) -> TaskEnd {
    TaskEnd::Failed { kind, message, retry_at: None }
}

fn ended_by_us(cause: &Cause) -> TaskEnd {
    match cause {
        Cause::Cancelled { reason } => TaskEnd::Cancelled { reason: reason.clone() },
        Cause::Limit(kind) => TaskEnd::Timeout(*kind),
        Cause::TooManyProcesses { count } => failed(
            FailureKind::TooManyProcesses,
            format!("exceeded the process limit with {count} processes"),
        ),
        Cause::WrongThread { expected, announced } => wrong_thread(expected, announced),
        Cause::Internal { message } => failed(FailureKind::Internal, message.clone()),
    }
}

fn wrong_thread(expected: &str, announced: &str) -> TaskEnd {
    let message = format!("the agent started thread {announced} instead of resuming {expected}");
    failed(FailureKind::WrongThread, message)
}

fn killed_by_signal(signal: i32) -> TaskEnd {
    let name = signal_name(signal);
    // SIGKILL comes from users and from the kernel when memory runs out; the exit status does not tell which.
    let hint = if signal == 9 { ", possibly because memory ran out" } else { "" };
    failed(FailureKind::Killed, format!("killed by {name}{hint}"))
}

/// Classifies a failure by its message; `default_kind` if the message is unknown.
fn failure_from_message(message: &str, default_kind: FailureKind) -> TaskEnd {
    let class = classify(message);
    TaskEnd::Failed {
        kind: class.map_or(default_kind, MessageClass::failure_kind),
        message: message.to_owned(),
        retry_at: retry_time(message),
    }
}

fn no_terminal_event(facts: &Facts<'_>) -> TaskEnd {
    let detail = facts.stderr.last_message().map(|text| format!(": {text}")).unwrap_or_default();
    failed(
        FailureKind::NoTerminalEvent,
        format!("exited with code 0 without reporting the end of its turn{detail}"),
    )
}

/// The agent reported no failure on standard output: its last error message decides.
fn failure_from_exit_code(code: i32, facts: &Facts<'_>) -> TaskEnd {
    if let Some(line) = facts.stderr.classified() {
        return failure_from_message(line, FailureKind::AgentExit);
    }
    if facts.stderr.last_message().is_none()
        && let Some(error) = facts.report.transient_errors.last()
        && facts.report.outcome == StreamOutcome::Interrupted
    {
        let message = format!("exited with code {code} after reporting: {}", error.message);
        return failure_from_message(&message, FailureKind::AgentExit);
    }
    let detail = facts.stderr.last_message().map(|text| format!(": {text}")).unwrap_or_default();
    let kind = match facts.stderr.is_active_writer() {
        true => FailureKind::AgentError,
        false => FailureKind::AgentExit,
    };
    failed(kind, format!("exited with code {code}{detail}"))
}

fn warnings(facts: &Facts<'_>) -> Vec<String> {
    facts.stderr.has_no_sandbox_helper().then(|| NO_SANDBOX_HELPER.to_owned()).into_iter().collect()
}

#[cfg(test)]
mod tests;
