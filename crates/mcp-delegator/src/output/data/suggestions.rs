//! Suggestions for a failed task, at most three. Each is derived from a finding; without findings there are
//! none.
//!
//! People and models trust a suggestion as ours and act on it. Text of an agent or a command appears in it
//! only in quotation marks, on one line, truncated.

use delegator_domain::task::{ExitStatus, FailureKind, LimitKind};
use delegator_engine::{sandbox_advice, sign_in_command};

use crate::output::call_syntax::SIGN_IN;
use crate::output::prelude::*;

pub const MAX_SUGGESTIONS: usize = 3;
/// The largest value of a time limit.
const MAX_LIMIT_SEC: u64 = 86_400;
const MAX_QUOTED_CHARS: usize = 200;
/// The signal of the kernel's out-of-memory killer.
const SIGKILL: i32 = 9;

#[derive(Debug, Clone)]
pub struct FailedTask<'a> {
    pub end: &'a TaskEnd,
    pub task_id: &'a str,
    /// A worker ran it: what is to be changed is there.
    pub is_remote: bool,
    pub agent: &'a str,
    pub model: Option<&'a str>,
    pub mode: &'a str,
    pub thread: Option<&'a str>,
    /// How the agent's process ended.
    pub exit: Option<ExitStatus>,
    /// The exceeded time limit.
    pub limit_seconds: Option<u64>,
    /// The activity that was in progress.
    pub running: Option<&'a str>,
    /// Where the error is.
    pub location: Option<ErrorLocation>,
    /// The failed command, and the most relevant line of its output.
    pub command: Option<(String, String)>,
    pub failed_tests: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorLocation {
    pub file: String,
    pub line: u64,
    pub message: String,
}

pub fn suggestions(found: &FailedTask<'_>) -> Vec<Suggestion> {
    let mut suggestions: Vec<Suggestion> = match found.end {
        TaskEnd::Failed { kind, message, retry_at_ms } => {
            by_kind(*kind, message, *retry_at_ms, found).into_iter().collect()
        }
        TaskEnd::Timeout(limit) => by_limit(*limit, found).map(Suggestion::from).into_iter().collect(),
        TaskEnd::Completed | TaskEnd::Cancelled { .. } => return Vec::new(),
    };
    if is_about_the_work(found.end) {
        suggestions.extend(by_location(found).map(Suggestion::from));
        suggestions.extend(by_tests(&found.failed_tests).map(Suggestion::from));
    }
    suggestions.truncate(MAX_SUGGESTIONS);
    suggestions
}

fn by_kind(
    kind: FailureKind,
    message: &str,
    retry_at_ms: Option<i64>,
    found: &FailedTask<'_>,
) -> Option<Suggestion> {
    let FailedTask { task_id, is_remote, agent, model, mode, thread, .. } = found;
    let text = match kind {
        FailureKind::UsageLimit | FailureKind::RateLimit | FailureKind::Network => {
            format!("Try again at {}.", UtcTime::from_ms(retry_at_ms?).0)
        }
        FailureKind::Auth => sign_in(agent, *is_remote),
        FailureKind::BadModel => other_model(*model),
        FailureKind::Sandbox => match sandbox_advice(message) {
            Some(advice) => advice.to_owned(),
            None => format!(
                "Mode {mode} needs a sandbox, which did not work here: install bubblewrap or allow user namespaces."
            ),
        },
        FailureKind::UntrustedDirectory => {
            "Run it in a git repository, or {set:skip_git_repo_check}.".to_owned()
        }
        FailureKind::ThreadNotFound => return Some(new_task_call(*thread)),
        FailureKind::TooManyProcesses => fewer_processes(found.running),
        FailureKind::BudgetExhausted => {
            "See what tasks have used with 'mcp-delegator status --usage', and raise the budget if it is too low."
                .to_owned()
        }
        FailureKind::Killed if found.exit == Some(ExitStatus::Signal(SIGKILL)) => {
            "If memory ran out, add memory or lower max_concurrent.".to_owned()
        }
        FailureKind::SupervisorLost => return Some(continue_call(task_id, mode, thread.is_some())),
        FailureKind::SubmissionUnconfirmed => {
            let text = "Look in the task list of the provider. If the task is not there, submit it again: {call}";
            return Some(retry_call(text, task_id));
        }
        FailureKind::RemoteGone => {
            let text = "Check that database_url is that of the fleet to which it was submitted. To run it again: {call}";
            return Some(retry_call(text, task_id));
        }
        FailureKind::NotAccepted | FailureKind::WorkerLost => {
            return Some(retry_call("Run it again: {call}", task_id));
        }
        FailureKind::CheckoutFailed => {
            "Check repoUrl and branch of the environment, and that git on the worker has access to them."
                .to_owned()
        }
        FailureKind::SetupFailed => "Correct the setup script of the environment.".to_owned(),
        FailureKind::RestorePointFailed => {
            "Free disk space or correct the problem that git reports, or {set:no_restore_point}.".to_owned()
        }
        FailureKind::SpawnFailed => {
            return Some(Suggestion::with_call("See what is missing: {call}", NextCall::new(&["doctor"])));
        }
        FailureKind::Killed
        | FailureKind::WrongThread
        | FailureKind::AgentError
        | FailureKind::AgentExit
        | FailureKind::NoTerminalEvent
        | FailureKind::SupervisorStartFailed
        | FailureKind::RemoteFailed
        | FailureKind::Internal => return None,
    };
    Some(text.into())
}

pub fn sign_in(agent: &str, is_remote: bool) -> String {
    match (sign_in_command(agent), is_remote) {
        (Some(command), false) => format!("{SIGN_IN}: {command}"),
        (Some(command), true) => format!("{SIGN_IN} on the worker: {command}"),
        (None, _) => format!("{SIGN_IN} to {agent}."),
    }
}

fn other_model(requested: Option<&str>) -> String {
    match requested {
        Some(model) => format!(
            "The requested model was {model}: use a model the agent supports, or omit model for its default."
        ),
        None => {
            "No model was requested, so the agent's own configuration selects this one: set model.".to_owned()
        }
    }
}

fn fewer_processes(running: Option<&str>) -> String {
    let during =
        running.map(|activity| format!(" Its last activity: {}.", quote(activity))).unwrap_or_default();
    format!("Let the agent start fewer processes at once, or raise max_processes.{during}")
}

fn new_task_call(thread: Option<&str>) -> Suggestion {
    let missing = match thread {
        Some(thread) => format!("the agent has no thread {}", quote(thread)),
        None => "the agent no longer has that thread".to_owned(),
    };
    Suggestion::with_call(
        format!("Start a new task with {{call}}: {missing}."),
        NextCall::new(&["local", "exec"]),
    )
}

fn retry_call(text: &str, task_id: &str) -> Suggestion {
    Suggestion::with_call(text, NextCall::for_task(&["retry"], task_id))
}

fn continue_call(task_id: &str, mode: &str, has_thread: bool) -> Suggestion {
    if !has_thread {
        return retry_call("It had no thread yet; submit it again: {call}", task_id);
    }
    let resume = NextCall::new(&["local", "resume"]).with("task", "go on").with("task_id", task_id);
    Suggestion::with_call("Continue where it stopped: {call}", resume.with("mode", mode))
}

fn by_limit(limit: LimitKind, found: &FailedTask<'_>) -> Option<String> {
    let seconds = found.limit_seconds?;
    let during = found.running.map(|activity| format!(" during {}", quote(activity))).unwrap_or_default();
    let (hit, input) = match limit {
        LimitKind::Idle => ("nothing happened for", "idle_timeout_sec"),
        LimitKind::Hard => ("it had run for", "hard_timeout_sec"),
    };
    let more = seconds.saturating_mul(2).min(MAX_LIMIT_SEC);
    Some(if more <= seconds {
        format!("Split it into several tasks: {hit} {seconds} s{during}, the largest {{input:{input}}}.")
    } else if found.is_remote {
        format!("Raise {input} to {more} in the configuration of the worker: {hit} {seconds} s{during}.")
    } else {
        format!("Pass {{input:{input}}} {more}: {hit} {seconds} s{during}.")
    })
}

/// Whether the work itself may have failed, rather than something that prevented the agent from working.
fn is_about_the_work(end: &TaskEnd) -> bool {
    match end {
        TaskEnd::Timeout(_) => true,
        TaskEnd::Failed { kind, .. } => matches!(
            kind,
            FailureKind::AgentError
                | FailureKind::AgentExit
                | FailureKind::NoTerminalEvent
                | FailureKind::Killed
                | FailureKind::TooManyProcesses
                | FailureKind::SupervisorLost
        ),
        TaskEnd::Completed | TaskEnd::Cancelled { .. } => false,
    }
}

fn by_location(found: &FailedTask<'_>) -> Option<String> {
    match (&found.location, &found.command) {
        (Some(ErrorLocation { file, line, message }), _) if message.is_empty() => {
            Some(format!("Look at {file}:{line}."))
        }
        (Some(ErrorLocation { file, line, message }), _) => {
            Some(format!("Look at {file}:{line}: {}", quote(message)))
        }
        (None, Some((command, output))) if !output.is_empty() => {
            Some(format!("Look at what {} printed: {}", quote(command), quote(output)))
        }
        (None, _) => None,
    }
}

fn by_tests(failed: &[String]) -> Option<String> {
    match failed {
        [] => None,
        [test] => Some(format!("Run the failing test alone: {}", quote(test))),
        [first, ..] => Some(format!("Run the {} failing tests alone, first {}", failed.len(), quote(first))),
    }
}

fn quote(text: &str) -> String {
    let short: String = text.chars().take(MAX_QUOTED_CHARS).filter(|c| !c.is_control()).collect();
    format!("\"{}\"", short.replace('"', "'"))
}

#[cfg(test)]
mod tests;
