//! Why a task failed: `metadata.error_context` of the tool envelope.
//!
//! The end of the task comes from its record, the errors of its commands from the fold: commands that failed
//! and never succeeded later. The last of them with a location is what the failure is about. A command is
//! blamed for the failure only if the agent gave no known reason and the command was the last one it ran;
//! then the error is the command's, and the agent's message becomes `agent_message`. A failure without a
//! command is the agent's own, from its texts.
//!
//! All text of agents and commands is truncated, and characters that control a terminal are removed.

use delegator_domain::task::{FailureKind, LimitKind};
use delegator_domain::terminal::sanitize;
use delegator_transcript::CommandFailure;

use crate::output::data::failure::{FailureText, PartialResults, Position, describe};
use crate::output::data::stored_task::exit_code;
use crate::output::data::suggestions::{ErrorLocation, FailedTask, MAX_SUGGESTIONS, suggestions};
use crate::output::prelude::*;

const MAX_LOCATIONS: usize = 20;
const MAX_LINE_CHARS: usize = 300;
const MAX_PATH_CHARS: usize = 400;

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ErrorContext {
    pub error_message: String,
    pub error_type: String,
    pub failed_files: Vec<String>,
    pub error_locations: Vec<ReportedLocation>,
    #[schemars(length(max = MAX_SUGGESTIONS))]
    pub suggestions: Vec<String>,
    #[schemars(extend("x-optional" = true))]
    pub failure_kind: &'static str,
    /// The agent's own message, if the error is that of a command.
    pub agent_message: Option<String>,
    /// When the agent expects its model to be available again.
    pub retry_at: Option<UtcTime>,
    /// Only for a task that ran into a limit.
    pub partial_results: Option<PartialResults>,
}

/// A location in the output of a failed command.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReportedLocation {
    #[serde(flatten)]
    pub position: Position,
    #[schemars(extend("x-optional" = true))]
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[schemars(extend("x-optional" = true))]
    pub command: String,
}

/// `None` for a task that did not fail. The error of a foreground run has the partial results itself, so that
/// its data need not repeat them.
pub fn of_task(
    task: &Task,
    record: Option<&Record>,
    syntax: CallSyntax<'_>,
    with_partial_results: bool,
) -> Option<ErrorContext> {
    let end = &task.ended.as_ref()?.end;
    let (text, kind, retry_at) = match end {
        TaskEnd::Failed { kind, message, retry_at_ms } => {
            let text = describe(*kind, &sanitize(message), exit_code(task));
            (text, kind.name(), retry_at_ms.map(UtcTime::from_ms))
        }
        TaskEnd::Timeout(limit) => {
            let message = format!("The task ran into its {} limit.", limit.name());
            (FailureText { message, agent_message: None }, limit.name(), None)
        }
        TaskEnd::Completed | TaskEnd::Cancelled { .. } => return None,
    };
    let locations: Vec<_> = locations(failures(record)).collect();
    let (error_type, error_message, agent_message) = match blamed_command(end, record) {
        Some((kind, problem)) => (clean_line(kind), clean_line(problem), text.agent_message),
        None => (kind.to_owned(), text.agent_message.unwrap_or(text.message), None),
    };
    let suggested = suggestions(&findings(task, end, record));
    let timed_out = record.filter(|_| with_partial_results && matches!(end, TaskEnd::Timeout(_)));
    Some(ErrorContext {
        error_message,
        error_type,
        failed_files: unique_files(&locations),
        error_locations: locations,
        suggestions: suggested.iter().map(|suggestion| syntax.sentence(suggestion)).collect(),
        failure_kind: kind,
        agent_message,
        retry_at,
        partial_results: timed_out.map(PartialResults::of),
    })
}

pub fn position(record: Option<&Record>) -> Option<Position> {
    locations(failures(record)).next().map(|location| location.position)
}

/// Commands that failed and never succeeded later, oldest first.
fn failures(record: Option<&Record>) -> &[CommandFailure] {
    record.map_or(&[], |record| &record.report.failures)
}

/// Error locations, those of the newest failure first.
fn locations(failures: &[CommandFailure]) -> impl Iterator<Item = ReportedLocation> {
    let all = failures.iter().rev().flat_map(|failure| {
        failure.places.iter().map(|place| ReportedLocation {
            position: Position { file: clean_path(&place.file), line: place.line, column: place.column },
            message: clean_line(&place.message),
            kind: place.kind.as_deref().map(clean_line),
            command: clean_line(&failure.command),
        })
    });
    all.take(MAX_LOCATIONS)
}

fn unique_files(locations: &[ReportedLocation]) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for location in locations {
        if !files.contains(&location.position.file) {
            files.push(location.position.file.clone());
        }
    }
    files
}

/// The error kind and message of the command that made the agent fail.
fn blamed_command<'a>(end: &TaskEnd, record: Option<&'a Record>) -> Option<(&'a str, &'a str)> {
    let gave_no_reason = matches!(
        end,
        TaskEnd::Failed {
            kind: FailureKind::AgentError | FailureKind::AgentExit | FailureKind::NoTerminalEvent,
            ..
        }
    );
    let last_failure = failures(record).last().filter(|_| gave_no_reason)?;
    let last_command = record?.report.commands.list.last();
    let is_last = last_failure.command.is_empty()
        || last_command.is_some_and(|command| command.command == last_failure.command);
    Some((last_failure.kind.as_deref()?, last_failure.message.as_str())).filter(|_| is_last)
}

fn findings<'a>(task: &'a Task, end: &'a TaskEnd, record: Option<&'a Record>) -> FailedTask<'a> {
    let report = record.map(|record| &record.report);
    let failures = failures(record);
    let about = failures.iter().rev().find(|failure| !failure.places.is_empty()).or(failures.last());
    let location = about.and_then(|failure| failure.places.first());
    let limits = record.and_then(|record| record.limits);
    let tests = report.and_then(|report| report.tests.as_ref());
    FailedTask {
        end,
        task_id: task.id.as_str(),
        is_remote: task.remote.is_some(),
        agent: &task.agent,
        model: task.model.as_deref(),
        mode: task.mode.name(),
        thread: task.thread_id.as_deref().or(task.resumed_thread.as_deref()),
        exit: task.ended.as_ref().and_then(|ended| ended.exit),
        limit_seconds: match end {
            TaskEnd::Timeout(LimitKind::Idle) => limits.map(|limits| limits.idle_sec),
            TaskEnd::Timeout(LimitKind::Hard) => limits.map(|limits| limits.hard_sec),
            _ => None,
        },
        running: report.and_then(|report| report.open_items.first()).map(|item| item.activity.as_str()),
        location: location.map(|location| ErrorLocation {
            file: clean_path(&location.file),
            line: location.line.into(),
            message: clean_line(&location.message),
        }),
        command: about
            .filter(|failure| !failure.command.is_empty())
            .map(|failure| (clean_line(&failure.command), clean_line(&failure.message))),
        failed_tests: tests
            .iter()
            .flat_map(|tests| &tests.failed_tests)
            .map(|name| clean_line(name))
            .collect(),
    }
}

/// Foreign text on one line, without terminal control characters, truncated.
pub fn clean_line(text: &str) -> String {
    clean_text(text, MAX_LINE_CHARS)
}

fn clean_path(text: &str) -> String {
    clean_text(text, MAX_PATH_CHARS)
}

fn clean_text(text: &str, max_chars: usize) -> String {
    let clean: String = sanitize(text).replace(['\n', '\t'], " ");
    match clean.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}\u{2026}", &clean[..at]),
        None => clean,
    }
}
