//! What could be done about a failure. Each suggestion is derived from something that was found; where nothing was
//! found nothing is suggested. At most three.
//!
//! A suggestion is read as ours, by people and by models that act on it. What others wrote stands in it only between
//! quotation marks, on one line and cut to size.

use delegator_domain::task::{FailureKind, LimitKind, TaskEnd};

const MAX_SUGGESTIONS: usize = 3;
/// The longest a limit can be made.
const MAX_LIMIT_SEC: u64 = 86_400;
const MAX_QUOTED_CHARS: usize = 200;

/// What is known about a failure. Texts of others are on one line already.
#[derive(Debug, Clone)]
pub struct Findings<'a> {
    pub end: &'a TaskEnd,
    pub task_id: &'a str,
    pub agent: &'a str,
    pub model: Option<&'a str>,
    pub mode: &'a str,
    pub thread: Option<&'a str>,
    /// The limit it ran into.
    pub limit_seconds: Option<u64>,
    /// What had begun and not ended.
    pub running: Option<&'a str>,
    /// What the failure is about.
    pub location: Option<ErrorLocation>,
    /// The command that complained, and the most telling line of it.
    pub command: Option<(String, String)>,
    pub failed_tests: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorLocation {
    pub file: String,
    pub line: u64,
    pub message: String,
}

pub fn suggestions(found: &Findings<'_>) -> Vec<String> {
    let mut told: Vec<String> = match found.end {
        TaskEnd::Failed { kind, message, retry_at } => {
            by_kind(*kind, message, retry_at.as_deref(), found).into_iter().collect()
        }
        TaskEnd::Timeout(limit) => by_limit(*limit, found).into_iter().collect(),
        TaskEnd::Completed | TaskEnd::Cancelled { .. } => return Vec::new(),
    };
    if is_about_the_work(found.end) {
        told.extend(by_location(found));
        told.extend(by_tests(&found.failed_tests));
    }
    told.truncate(MAX_SUGGESTIONS);
    told
}

fn by_kind(kind: FailureKind, message: &str, retry_at: Option<&str>, found: &Findings<'_>) -> Option<String> {
    let Findings { task_id, agent, model, mode, thread, .. } = found;
    match kind {
        FailureKind::UsageLimit | FailureKind::RateLimit => retry_at.map(retry_suggestion),
        FailureKind::Auth if *agent == "codex" => Some("Sign in: codex login".to_owned()),
        FailureKind::Auth => Some(format!("Sign in to {agent}.")),
        FailureKind::BadModel => Some(match model {
            Some(model) => format!(
                "The model asked for was {model}: name one the agent can use, or leave model out for its default."
            ),
            None => "No model was asked for, so the agent's own configuration names this one: set model."
                .to_owned(),
        }),
        FailureKind::Sandbox if message.contains("CODEX_HOME lies below") => {
            Some("Set CODEX_HOME to a directory that is not below the temporary directory.".to_owned())
        }
        FailureKind::Sandbox => Some(format!(
            "Mode {mode} needs a sandbox, which did not work here: install bubblewrap or allow user namespaces."
        )),
        FailureKind::UntrustedDirectory => {
            Some("Run it in a git repository, or set skip_git_repo_check to true.".to_owned())
        }
        FailureKind::ThreadNotFound => Some(match thread {
            Some(thread) => format!(
                "Begin anew with local exec: thread {} is not among those the agent keeps.",
                quote(thread)
            ),
            None => "Begin anew with local exec: the agent no longer keeps that thread.".to_owned(),
        }),
        FailureKind::TooManyProcesses => {
            let during = found.running.map(|words| format!(" It was {}.", quote(words))).unwrap_or_default();
            Some(format!("Have it start fewer processes at once, or raise max_processes.{during}"))
        }
        FailureKind::SupervisorLost => Some(match thread {
            Some(_) => {
                format!("Go on where it stopped: mcp-delegator local resume 'go on' --task-id {task_id}")
            }
            None => format!("It had not begun a thread; submit it again: mcp-delegator retry {task_id}"),
        }),
        FailureKind::Killed if message.contains("memory") => {
            Some("If memory ran out, give the machine more of it or lower max_concurrent.".to_owned())
        }
        FailureKind::SpawnFailed => Some("See what is missing: mcp-delegator doctor".to_owned()),
        FailureKind::Killed
        | FailureKind::Network
        | FailureKind::WrongThread
        | FailureKind::AgentError
        | FailureKind::AgentExit
        | FailureKind::NoTerminalEvent
        | FailureKind::SupervisorStartFailed
        | FailureKind::Internal => None,
    }
}

/// What the agent said of a time is ours to say only if it is one.
fn retry_suggestion(retry_at: &str) -> String {
    let is_span = retry_at.ends_with(['s', 'm', 'h']) && !retry_at.contains(':');
    let word = if is_span { "in" } else { "at" };
    match is_time(retry_at) {
        true => format!("Try again {word} {retry_at}."),
        false => format!("Try again {word} {}.", quote(retry_at)),
    }
}

/// Numbers, names of months, units: `3:51 PM`, `Sep 23rd, 2026 8:13 AM`, `2 days 3 hours`, `1.898s`.
fn is_time(text: &str) -> bool {
    let is_part = |word: &str| {
        let word = word.trim_end_matches(',');
        let letters = word.trim_start_matches(|c: char| c.is_ascii_digit() || ":.-+".contains(c));
        let is_unit =
            ["", "s", "ms", "m", "h", "d", "st", "nd", "rd", "th", "AM", "PM", "UTC", "Z"].contains(&letters);
        let is_word = ["second", "minute", "hour", "day", "week"].contains(&letters.trim_end_matches('s'));
        let is_month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
            .contains(&letters);
        is_unit || is_word || is_month
    };
    text.split(' ').all(is_part) && text.contains(|c: char| c.is_ascii_digit())
}

fn by_limit(limit: LimitKind, found: &Findings<'_>) -> Option<String> {
    let seconds = found.limit_seconds?;
    let during = found.running.map(|words| format!(" during {}", quote(words))).unwrap_or_default();
    let (hit, input) = match limit {
        LimitKind::Idle => ("nothing happened for", "idle_timeout_sec"),
        LimitKind::Hard => ("it had run for", "hard_timeout_sec"),
    };
    let more = seconds.saturating_mul(2).min(MAX_LIMIT_SEC);
    Some(match more > seconds {
        true => format!("Pass {input} {more}: {hit} {seconds} s{during}."),
        false => format!("Make it several tasks: {hit} {seconds} s{during}, the longest {input} there is."),
    })
}

/// Whether the work itself may be what went wrong, and not something that kept the agent from working.
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

fn by_location(found: &Findings<'_>) -> Option<String> {
    match (&found.location, &found.command) {
        (Some(ErrorLocation { file, line, message }), _) if message.is_empty() => {
            Some(format!("Look at {file}:{line}."))
        }
        (Some(ErrorLocation { file, line, message }), _) => {
            Some(format!("Look at {file}:{line}: {}", quote(message)))
        }
        (None, Some((command, said))) if !said.is_empty() => {
            Some(format!("Look at what {} printed: {}", quote(command), quote(said)))
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

/// Words of others, marked as such.
fn quote(text: &str) -> String {
    let short: String = text.chars().take(MAX_QUOTED_CHARS).filter(|c| !c.is_control()).collect();
    format!("\"{}\"", short.replace('"', "'"))
}

#[cfg(test)]
mod tests;
