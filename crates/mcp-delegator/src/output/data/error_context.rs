//! Why a task failed: `metadata.error_context` of the tool envelope.
//!
//! The end of the task comes from its record, the errors of its commands from the fold: commands that failed and never
//! succeeded later. The last of them with a location is what the failure is about. A command is blamed for the failure only
//! if the agent gave no known reason and the command was the last one it ran; then the error is the command's, and the
//! agent's message becomes `agent_message`.
//!
//! All text of agents and commands is truncated, and characters that control a terminal are removed.

use delegator_domain::task::{FailureKind, LimitKind, TaskEnd};
use delegator_domain::terminal::sanitize;
use delegator_engine::Record;
use delegator_registry::Task;
use delegator_transcript::CommandFailure;
use serde::Serialize;
use serde_json::{Value, json};

use crate::output::data::failure::truncate_quote;
use crate::output::data::suggestions::{ErrorLocation, Findings, suggestions};
use crate::output::next_call::CallSyntax;

/// Maximum number of error locations.
const MAX_LOCATIONS: usize = 20;
const MAX_LINE_CHARS: usize = 300;
const MAX_PATH_CHARS: usize = 400;

/// A source location that a failed command reported, in our JSON.
#[derive(Debug, Serialize)]
pub struct LocatedError {
    pub file: String,
    pub line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    command: String,
}

/// `null` for a task that did not fail.
pub fn to_json(task: &Task, record: Option<&Record>, syntax: CallSyntax<'_>) -> Value {
    let Some(end) = task.ended.as_ref().map(|ended| &ended.end) else { return Value::Null };
    let (message, kind, retry_at) = match end {
        TaskEnd::Failed { kind, message, retry_at } => {
            (truncate_quote(&sanitize(message)), kind.name(), retry_at.clone())
        }
        TaskEnd::Timeout(limit) => {
            (format!("The task ran into its {} limit.", limit.name()), limit.name(), None)
        }
        TaskEnd::Completed | TaskEnd::Cancelled { .. } => return Value::Null,
    };
    let locations: Vec<LocatedError> = locations(failures(record)).collect();
    let suggested = suggestions(&findings(task, end, record));
    let suggested: Vec<String> = suggested.iter().map(|suggestion| syntax.sentence(suggestion)).collect();
    let mut context = json!({
        "error_message": message,
        "error_type": kind,
        "failed_files": unique_files(&locations),
        "error_locations": locations,
        "suggestions": suggested,
        "failure_kind": kind,
    });
    if let Some((kind, message)) = blamed_command(end, record) {
        context["agent_message"] = context["error_message"].take();
        (context["error_type"], context["error_message"]) =
            (clean_line(kind).into(), clean_line(message).into());
    }
    if let Some(retry_at) = retry_at {
        context["retry_at"] = retry_at.into();
    }
    context
}

/// Where the failure is, if known.
pub fn first_location(record: Option<&Record>) -> Option<LocatedError> {
    locations(failures(record)).next()
}

/// Commands that failed and never succeeded later, oldest first.
fn failures(record: Option<&Record>) -> &[CommandFailure] {
    record.map_or(&[], |record| &record.report.failures)
}

/// Error locations, those of the newest failure first.
fn locations(failures: &[CommandFailure]) -> impl Iterator<Item = LocatedError> {
    let all = failures.iter().rev().flat_map(|failure| {
        failure.places.iter().map(|place| LocatedError {
            file: clean_path(&place.file),
            line: place.line,
            column: place.column,
            message: clean_line(&place.message),
            kind: place.kind.as_deref().map(clean_line),
            command: clean_line(&failure.command),
        })
    });
    all.take(MAX_LOCATIONS)
}

fn unique_files(locations: &[LocatedError]) -> Vec<&str> {
    let mut files: Vec<&str> = Vec::new();
    for LocatedError { file, .. } in locations {
        if !files.contains(&file.as_str()) {
            files.push(file);
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
    let last_command = record?.report.commands.list.last()?;
    let is_last = last_command.command == last_failure.command;
    Some((last_failure.kind.as_deref()?, last_failure.message.as_str())).filter(|_| is_last)
}

fn findings<'a>(task: &'a Task, end: &'a TaskEnd, record: Option<&'a Record>) -> Findings<'a> {
    let report = record.map(|record| &record.report);
    let failures = failures(record);
    let about = failures.iter().rev().find(|failure| !failure.places.is_empty()).or(failures.last());
    let location = about.and_then(|failure| failure.places.first());
    let limits = record.and_then(|record| record.limits);
    let tests = report.and_then(|report| report.tests.as_ref());
    Findings {
        end,
        task_id: task.id.as_str(),
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
        command: about.map(|failure| (clean_line(&failure.command), clean_line(&failure.message))),
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
