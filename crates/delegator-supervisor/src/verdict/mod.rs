//! Decides how a run ended: a pure function of our own actions, the exit status and the agent's output.
//!
//! In this order: why the supervisor ended it; a signal that the supervisor did not send; the agent's report
//! of its turn; its exit code. A run is completed only if its turn is and the exit code is 0. Refused calls
//! are warnings: the agent knows about them and continues.
//!
//! What a failure is about comes from the agent's error events, else from the last message on standard error,
//! and only if it is certain: callers retry by it.

mod retry_time;
mod stderr;

use delegator_domain::agents::AgentProtocol;
use delegator_domain::budget::BudgetFinding;
use delegator_domain::task::{ExitStatus, FailureKind, LimitKind, TaskEnd, Verification};
use delegator_transcript::{ErrorCode, Report, StreamOutcome};
use jiff::Zoned;

use crate::agent::reported_failure;
pub use retry_time::local_time;
use retry_time::retry_time;
pub use stderr::{RefusedCalls, StderrDigest};

/// Shorter texts may be part of any message.
const MIN_QUOTE_BYTES: usize = 12;
/// What agents write around an error: `Ran into this error: … Please retry if you think …`.
const MAX_CONTEXT_BYTES: usize = 128;

/// Why the supervisor ended the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    Cancelled { reason: Option<String> },
    Limit(LimitKind),
    TooManyProcesses { count: usize },
    Budget(BudgetFinding),
    WrongThread { expected: String, announced: String },
    Internal { message: String },
}

#[derive(Debug, Clone, Copy)]
pub struct EndedRun<'a> {
    pub protocol: AgentProtocol,
    pub cause: Option<&'a Cause>,
    /// `None` if it could not be killed.
    pub exit: Option<ExitStatus>,
    /// We ended the agent after its last turn, because it takes messages and would have waited for the next
    /// one. Then its exit status says nothing.
    pub was_finished: bool,
    pub report: &'a Report,
    pub stderr: &'a StderrDigest,
    /// The thread it had to resume.
    pub expected_thread: Option<&'a str>,
    /// The time, in the time zone of the agent.
    pub ended_at: &'a Zoned,
}

pub fn verdict(run: &EndedRun<'_>) -> TaskEnd {
    if let Some(cause) = run.cause {
        return ended_by_us(cause);
    }
    if let (Some(expected), Some(announced)) = (run.expected_thread, run.report.thread_id.as_deref())
        && expected != announced
    {
        return wrong_thread(expected, announced);
    }
    let code = match run.exit {
        _ if run.was_finished => 0,
        Some(ExitStatus::Signal(signal)) => return killed_by_signal(signal),
        Some(ExitStatus::Code(code)) => code,
        None => return TaskEnd::failed(FailureKind::Internal, "the exit status of the agent is unknown"),
    };
    match &run.report.outcome {
        StreamOutcome::Failed { message, code } => {
            let end = reported_end(run.protocol, message, *code, run.ended_at);
            with_reset_time(end, run.report.limit_resets_at)
        }
        StreamOutcome::Completed | StreamOutcome::NotAnnounced if code == 0 => match blocking_sandbox(run) {
            Some(warning) => TaskEnd::failed(FailureKind::Sandbox, warning),
            None => TaskEnd::Completed,
        },
        StreamOutcome::Interrupted if code == 0 => {
            TaskEnd::failed(FailureKind::NoTerminalEvent, run.stderr.last_message().unwrap_or_default())
        }
        StreamOutcome::Completed | StreamOutcome::NotAnnounced | StreamOutcome::Interrupted => {
            unreported_end(run)
        }
    }
}

/// The agent's warning, if its sandbox blocked all work. Without its helper Codex's sandbox fails every
/// command silently and every patch with an item, yet the turn succeeds.
fn blocking_sandbox<'a>(run: &EndedRun<'a>) -> Option<&'a str> {
    let Report { files, commands, .. } = run.report;
    let did_nothing = files.added.is_empty() && files.modified.is_empty() && files.deleted.is_empty();
    let is_blocked = files.failed_patches > 0 && did_nothing && commands.finished == 0;
    run.stderr.no_sandbox_helper.as_deref().filter(|_| is_blocked)
}

/// The end of a run whose agent reported an error as the end of its turn.
pub fn reported_end(
    protocol: AgentProtocol,
    message: &str,
    code: Option<ErrorCode>,
    ended_at: &Zoned,
) -> TaskEnd {
    let kind = reported_failure(protocol, message, code).unwrap_or(FailureKind::AgentError);
    failed_with_message(kind, message, ended_at)
}

/// The message may quote text of any source, so only failures that pass with time have the time it names.
fn failed_with_message(kind: FailureKind, message: &str, ended_at: &Zoned) -> TaskEnd {
    let passes = matches!(kind, FailureKind::UsageLimit | FailureKind::RateLimit | FailureKind::Network);
    let retry_at = passes.then(|| retry_time(message, ended_at)).flatten();
    let retry_at_ms = retry_at.map(|time| time.as_millisecond());
    TaskEnd::Failed { kind, message: message.to_owned(), retry_at_ms }
}

/// A limit whose reset the agent reported with a time of its own: the message may name none, or only the time
/// of day.
fn with_reset_time(end: TaskEnd, resets_at: Option<i64>) -> TaskEnd {
    match (end, resets_at) {
        (TaskEnd::Failed { kind: FailureKind::UsageLimit, message, .. }, Some(second)) => TaskEnd::Failed {
            kind: FailureKind::UsageLimit,
            message,
            retry_at_ms: Some(second.saturating_mul(1000)),
        },
        (end, _) => end,
    }
}

fn ended_by_us(cause: &Cause) -> TaskEnd {
    match cause {
        Cause::Cancelled { reason } => TaskEnd::Cancelled { reason: reason.clone() },
        Cause::Limit(kind) => TaskEnd::Timeout(*kind),
        Cause::TooManyProcesses { count } => TaskEnd::failed(
            FailureKind::TooManyProcesses,
            format!("exceeded the process limit with {count} processes"),
        ),
        Cause::Budget(finding) => TaskEnd::failed(FailureKind::BudgetExhausted, finding.to_string()),
        Cause::WrongThread { expected, announced } => wrong_thread(expected, announced),
        Cause::Internal { message } => TaskEnd::failed(FailureKind::Internal, message),
    }
}

fn wrong_thread(expected: &str, announced: &str) -> TaskEnd {
    let message = format!("the agent started thread {announced} instead of resuming {expected}");
    TaskEnd::failed(FailureKind::WrongThread, message)
}

/// `SIGKILL` for 9; `signal N` for numbers without a name.
fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(signal).ok().and_then(|signal| NAMES.get(signal.checked_sub(1)?));
    name.map_or_else(|| format!("signal {signal}"), |name| format!("SIG{name}"))
}

fn killed_by_signal(signal: i32) -> TaskEnd {
    let name = signal_name(signal);
    // SIGKILL comes from users and from the kernel when memory runs out; the exit status does not tell which.
    let hint = if signal == 9 { ", possibly because memory ran out" } else { "" };
    TaskEnd::failed(FailureKind::Killed, format!("killed by {name}{hint}"))
}

/// The end of a run that exited with an error code and reported no end of its turn: an error event that
/// nothing followed decides, else the last message on standard error.
fn unreported_end(run: &EndedRun<'_>) -> TaskEnd {
    let EndedRun { protocol, report, stderr, ended_at, .. } = run;
    let unresolved = report.unresolved_error.as_deref();
    let event_kind = unresolved.and_then(|message| reported_failure(*protocol, message, None));
    let (kind, message) = match (event_kind, stderr.failure_kind()) {
        (Some(kind), _) => (Some(kind), unresolved),
        (None, kind) => (kind, stderr.last_message().or(unresolved)),
    };
    let unknown = if stderr.is_active_writer { FailureKind::AgentError } else { FailureKind::AgentExit };
    failed_with_message(kind.unwrap_or(unknown), message.unwrap_or_default(), ended_at)
}

/// The outcome of a verification, by our own actions and its exit status. `began`: whether the command itself
/// ever ran.
pub(crate) fn verification_outcome(
    cause: Option<&Cause>,
    exit: Option<ExitStatus>,
    began: bool,
) -> Verification {
    match cause {
        Some(Cause::Cancelled { .. }) => return Verification::Cancelled,
        Some(Cause::Limit(_)) if began => return Verification::TimedOut,
        Some(Cause::TooManyProcesses { .. }) => return Verification::TooManyProcesses,
        Some(Cause::Internal { .. } | Cause::WrongThread { .. } | Cause::Budget(_)) => {
            return Verification::Unknown;
        }
        Some(Cause::Limit(_)) | None => {}
    }
    match exit {
        _ if !began => Verification::SandboxFailed,
        Some(ExitStatus::Code(0)) => Verification::Verified,
        Some(_) => Verification::Refuted,
        None => Verification::Unknown,
    }
}

/// Whether an agent did anything before it failed: callers retry or run another agent only if it did not.
/// Errors are no work, and neither is a last message that only says why the turn failed: some agents send
/// their error as a message, too.
pub fn has_acted(report: &Report) -> bool {
    let last = report.final_message.as_ref().map(|message| message.text.as_str()).unwrap_or_default();
    let only_states_failure = match &report.outcome {
        StreamOutcome::Failed { message, code } => states_failure(last, message, *code),
        _ => false,
    };
    report.counts.items.iter().any(|(kind, count)| match kind.as_str() {
        "error" => false,
        "agent_message" => *count > u64::from(only_states_failure),
        _ => true,
    })
}

/// Whether a text is the failure, quotes it with little more, or is an error of the same kind in other words.
fn states_failure(text: &str, failure: &str, code: Option<ErrorCode>) -> bool {
    let kind = |text: &str, code| reported_failure(AgentProtocol::Acp, text, code);
    let is_of_kind = kind(failure, code).is_some_and(|expected| kind(text, None) == Some(expected));
    let [text, failure] = [text, failure].map(|text| text.trim().trim_end_matches('.'));
    let is_quote = |part: &str, whole: &str| part.len() >= MIN_QUOTE_BYTES && whole.contains(part);
    let is_quoted = is_quote(failure, text) && text.len() - failure.len() <= MAX_CONTEXT_BYTES;
    text == failure || is_quote(text, failure) || is_quoted || is_of_kind
}

#[cfg(test)]
mod tests;
