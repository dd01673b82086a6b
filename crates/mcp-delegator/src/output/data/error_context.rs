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
use serde_json::{Map, Value, json};

use crate::output::data::failure::truncate_quote;
use crate::output::data::suggestions::{ErrorLocation, Findings, suggestions};
use crate::output::next_call::CallSyntax;

/// Maximum number of error locations.
const MAX_LOCATIONS: usize = 20;
const MAX_LINE_CHARS: usize = 300;
const MAX_PATH_CHARS: usize = 400;

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
    let failures = failures(record);
    let locations = locations(failures);
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

/// `file`, `line` and `column` of the failure, if known.
pub fn location(record: Option<&Record>) -> Map<String, Value> {
    let mut value = locations(failures(record)).into_iter().next().unwrap_or_default();
    value.retain(|key, _| matches!(key.as_str(), "file" | "line" | "column"));
    value
}

/// Commands that failed and never succeeded later, oldest first.
fn failures(record: Option<&Record>) -> &[Value] {
    record
        .and_then(|record| record.report.get("failures"))
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn locations_of(failure: &Value) -> &[Value] {
    failure["places"].as_array().map_or(&[], Vec::as_slice)
}

/// Error locations, those of the newest failure first.
fn locations(failures: &[Value]) -> Vec<Map<String, Value>> {
    let all = failures.iter().rev().flat_map(|failure| {
        locations_of(failure).iter().map(|location| {
            let mut value = Map::new();
            value.insert("file".into(), clean_path(text(location, "file")).into());
            for key in ["line", "column"] {
                value.extend(location[key].as_u64().map(|number| (key.to_owned(), number.into())));
            }
            value.insert("message".into(), clean_line(text(location, "message")).into());
            value.extend(location["kind"].as_str().map(|kind| ("kind".to_owned(), clean_line(kind).into())));
            value.insert("command".into(), clean_line(text(failure, "command")).into());
            value
        })
    });
    all.take(MAX_LOCATIONS).collect()
}

fn unique_files(locations: &[Map<String, Value>]) -> Vec<&Value> {
    let mut files: Vec<&Value> = Vec::new();
    for file in locations.iter().filter_map(|location| location.get("file")) {
        if !files.contains(&file) {
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
    let last_command = record?.report.pointer("/commands/list")?.as_array()?.last()?;
    let is_last = last_command["command"] == last_failure["command"];
    Some((last_failure["kind"].as_str()?, text(last_failure, "message"))).filter(|_| is_last)
}

fn findings<'a>(task: &'a Task, end: &'a TaskEnd, record: Option<&'a Record>) -> Findings<'a> {
    let report = record.map(|record| &record.report);
    let at = |path: &str| report.and_then(|report| report.pointer(path));
    let failures = failures(record);
    let about = failures.iter().rev().find(|failure| !locations_of(failure).is_empty()).or(failures.last());
    let location = about.and_then(|failure| locations_of(failure).first());
    let limits = record.and_then(|record| record.limits);
    let failed_tests = at("/tests/failed_tests").and_then(Value::as_array);
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
        running: at("/open_items/0/activity").and_then(Value::as_str),
        location: location.map(|location| ErrorLocation {
            file: clean_path(text(location, "file")),
            line: location["line"].as_u64().unwrap_or_default(),
            message: clean_line(text(location, "message")),
        }),
        command: about
            .map(|failure| (clean_line(text(failure, "command")), clean_line(text(failure, "message")))),
        failed_tests: failed_tests
            .map(|tests| tests.iter().filter_map(Value::as_str).map(clean_line).collect())
            .unwrap_or_default(),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
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
