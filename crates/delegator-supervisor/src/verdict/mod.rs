//! How a run ended: a pure function of what we did, how the process ended and what it said.
//!
//! In this order: what we did ourselves; a signal nobody of us sent; what the agent said of its turn; its exit code; its
//! complaints. A run is completed only if its turn is and the exit code is 0. Refused calls are warnings: the agent
//! knows of them and goes on.

mod classify;
mod signals;
mod stderr;
mod verification;

use delegator_domain::task::{End, ExitStatus, FailureKind, LimitKind};
use delegator_transcript::{Outcome, Report};

pub use classify::{Class, classify, retry_time};
pub use signals::signal_name;
pub use stderr::{RefusedCalls, StderrDigest};
pub(crate) use verification::judge;

const NO_HELPER: &str = "CODEX_HOME lies below the temporary directory, codex makes no sandbox helper there, and \
                         commands in its sandbox fail without a word";

/// Why we ended it.
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
        asked: String,
        announced: String,
    },
    /// Something of our own failed.
    Internal {
        message: String,
    },
}

/// All that counts.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub cause: Option<&'a Cause>,
    /// Nothing if it could not be killed.
    pub exit: Option<ExitStatus>,
    pub report: &'a Report,
    pub stderr: &'a StderrDigest,
    /// The thread it was to go on with.
    pub asked_thread: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub end: End,
    pub refused: RefusedCalls,
    pub warnings: Vec<String>,
}

pub fn verdict(facts: &Facts<'_>) -> Verdict {
    Verdict { end: end(facts), refused: facts.stderr.refused_calls(), warnings: warnings(facts) }
}

fn end(facts: &Facts<'_>) -> End {
    if let Some(cause) = facts.cause {
        return ended_by_us(cause);
    }
    if let (Some(asked), Some(announced)) = (facts.asked_thread, facts.report.thread_id.as_deref())
        && asked != announced
    {
        return wrong_thread(asked, announced);
    }
    let code = match facts.exit {
        Some(ExitStatus::Signal(signal)) => return killed(signal),
        Some(ExitStatus::Code(code)) => code,
        None => return failed(FailureKind::Internal, "nobody knows how the agent ended".to_owned()),
    };
    match &facts.report.outcome {
        Outcome::Failed { message } => by_message(message, FailureKind::AgentError),
        Outcome::Completed if code == 0 && sandbox_broke_everything(facts) => {
            failed(FailureKind::Sandbox, format!("none of its changes could be made: {NO_HELPER}"))
        }
        Outcome::Completed | Outcome::NotAnnounced if code == 0 => End::Completed,
        Outcome::Interrupted if code == 0 => no_terminal_event(facts),
        Outcome::Completed | Outcome::NotAnnounced | Outcome::Interrupted => by_exit(code, facts),
    }
}

/// Without its helper Codex's sandbox fails every command silently and every patch with an item, and the turn ends well.
fn sandbox_broke_everything(facts: &Facts<'_>) -> bool {
    let Report { files, commands, .. } = facts.report;
    let did_nothing = files.added.is_empty() && files.modified.is_empty() && files.deleted.is_empty();
    facts.stderr.has_no_sandbox_helper() && files.failed_patches > 0 && did_nothing && commands.finished == 0
}

fn failed(kind: FailureKind, message: String) -> End {
    End::Failed { kind, message, retry_at: None }
}

fn ended_by_us(cause: &Cause) -> End {
    match cause {
        Cause::Cancelled { reason } => End::Cancelled { reason: reason.clone() },
        Cause::Limit(kind) => End::Timeout(*kind),
        Cause::TooManyProcesses { count } => {
            failed(FailureKind::TooManyProcesses, format!("it had {count} processes"))
        }
        Cause::WrongThread { asked, announced } => wrong_thread(asked, announced),
        Cause::Internal { message } => failed(FailureKind::Internal, message.clone()),
    }
}

fn wrong_thread(asked: &str, announced: &str) -> End {
    let message = format!("asked to go on with thread {asked}, the agent began with {announced}");
    failed(FailureKind::WrongThread, message)
}

fn killed(signal: i32) -> End {
    let name = signal_name(signal);
    // SIGKILL comes from people and from the kernel when memory runs out; it does not say which.
    let maybe = if signal == 9 { ", maybe because memory ran out" } else { "" };
    failed(FailureKind::Killed, format!("killed by {name}{maybe}"))
}

/// What a message says, or else `otherwise`.
fn by_message(message: &str, otherwise: FailureKind) -> End {
    let class = classify(message);
    End::Failed {
        kind: class.map_or(otherwise, Class::failure),
        message: message.to_owned(),
        retry_at: retry_time(message),
    }
}

fn no_terminal_event(facts: &Facts<'_>) -> End {
    let said = facts.stderr.last_complaint().map(|text| format!(": {text}")).unwrap_or_default();
    failed(FailureKind::NoTerminalEvent, format!("it exited with 0 and never said that it was done{said}"))
}

/// It said nothing of a failure on standard output: what it complained about last decides.
fn by_exit(code: i32, facts: &Facts<'_>) -> End {
    if let Some(complaint) = facts.stderr.classified() {
        return by_message(complaint, FailureKind::AgentExit);
    }
    if facts.stderr.last_complaint().is_none()
        && let Some(error) = facts.report.transient_errors.last()
        && facts.report.outcome == Outcome::Interrupted
    {
        let message = format!("exited with code {code} while it said: {}", error.message);
        return by_message(&message, FailureKind::AgentExit);
    }
    let said = facts.stderr.last_complaint().map(|text| format!(": {text}")).unwrap_or_default();
    let kind = match facts.stderr.is_active_writer() {
        true => FailureKind::AgentError,
        false => FailureKind::AgentExit,
    };
    failed(kind, format!("exited with code {code}{said}"))
}

fn warnings(facts: &Facts<'_>) -> Vec<String> {
    facts.stderr.has_no_sandbox_helper().then(|| NO_HELPER.to_owned()).into_iter().collect()
}

#[cfg(test)]
mod tests;
