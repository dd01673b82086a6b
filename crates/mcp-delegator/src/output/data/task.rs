//! A task in the JSON of the tool envelope, for wait, results and status.

use std::collections::BTreeMap;

use delegator_domain::task::{ExitStatus, State, TaskEnd};
use delegator_engine::{QueuedTask, Record, Snapshot, TaskFiles};
use delegator_registry::{BlockedBy, EndRecord, Task, TaskSummary};
use delegator_transcript::{RecentLine, Report, TestReport, without_repeated_keys};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::output::data::{error_context, files, output, restore_point, structured_output, verification};
use crate::output::next_call::CallSyntax;
use crate::output::values::rfc3339;

/// Characters of the agent's final message that every result contains.
const MESSAGE_CHARS: usize = 8_000;
/// Characters of a label value in lists of tasks.
const LABEL_CHARS: usize = 200;
/// Marks a truncated text; its length counts.
pub const MARK: &str = " [truncated]";

pub fn format_timestamp(milliseconds: i64) -> String {
    Timestamp::from_millisecond(milliseconds).map(rfc3339).unwrap_or_default()
}

/// When the task started; if it never did, when it was accepted.
pub fn started_ms(task: &Task) -> i64 {
    task.started_at_ms.unwrap_or(task.created_at_ms)
}

/// The duration of the run: by the monotonic clock if recorded, else by the wall clock.
pub fn ran_ms(task: &Task) -> u64 {
    let ended = task.ended.as_ref();
    // A task that never started took no time, however long it was queued.
    let worked = |ended: &EndRecord| task.started_at_ms.map_or(0, |started| (ended.at_ms - started).max(0));
    let by_wall = ended.map_or(0, worked).unsigned_abs();
    ended.and_then(|ended| ended.ran_ms).unwrap_or(by_wall)
}

pub fn exit_code(task: &Task) -> Option<i32> {
    match task.ended.as_ref()?.exit? {
        ExitStatus::Code(code) => Some(code),
        // The shell convention.
        ExitStatus::Signal(signal) => Some(128 + signal),
    }
}

/// The agent's output to include in a result.
#[derive(Debug)]
pub struct OutputExcerpt {
    pub stdout: String,
    pub stderr: String,
    pub budget: usize,
    /// The caller requested it, and thereby the complete final message.
    pub is_requested: bool,
}

/// The common data of wait and results.
pub fn result(
    task: &Task,
    task_files: &TaskFiles,
    shown: Option<OutputExcerpt>,
    syntax: CallSyntax<'_>,
) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("task_id".into(), task.id.as_str().into());
    data.insert("state".into(), task.state.public_name().into());
    data.insert("summary".into(), summary(task).into());
    let record = task_files.record.as_ref();
    data.insert(
        "final_message".into(),
        final_message(record, shown.as_ref().is_some_and(|shown| shown.is_requested)),
    );
    if let Some(structured) = structured_output::from_task(task, record) {
        structured.insert_into(&mut data);
    }
    data.insert("metadata".into(), metadata(task, record, syntax));
    if !task.labels.is_empty() {
        data.insert("labels".into(), json!(task.labels));
    }
    files::add_to(&mut data, record);
    if let Some(point) = restore_point::to_json(&task.id, task_files.restore_point.as_ref()) {
        data.insert("restore_point".into(), point);
    }
    let budget = shown.as_ref().map(|shown| shown.budget);
    if let Some(check) = verification::to_json(task, record, budget) {
        data.insert("verification".into(), check);
    }
    let output = match shown {
        Some(OutputExcerpt { stdout, stderr, budget, .. }) => {
            let sizes = record.map_or((0, 0), |record| (record.stdout.received, record.stderr.received));
            output::included(&stdout, &stderr, budget, sizes)
        }
        None => output::excluded("Output excluded by default (use include_output=true)"),
    };
    data.insert("output".into(), output);
    data
}

/// The result in one sentence.
pub fn summary(task: &Task) -> String {
    match &task.ended {
        Some(EndRecord { summary: Some(summary), .. }) => summary.clone(),
        Some(EndRecord { end: TaskEnd::Cancelled { reason: Some(reason) }, .. }) => {
            format!("Cancelled ({reason}) before it began")
        }
        _ => format!("Task {}", task.state.public_name()),
    }
}

/// The last events as the agent wrote them. A line that is not an event, or was truncated, stays a text.
pub fn last_events(record: &Record) -> Value {
    let event = |line: &RecentLine| serde_json::from_str(&without_repeated_keys(&line.text)).ok();
    let lines = record.report.recent_lines.iter();
    lines.map(|line| event(line).filter(Value::is_object).unwrap_or_else(|| json!(line))).collect()
}

pub fn final_text(record: Option<&Record>) -> Option<&str> {
    Some(&record?.report.final_message.as_ref()?.text)
}

fn final_message(record: Option<&Record>, whole: bool) -> Value {
    let Some(text) = final_text(record) else { return Value::Null };
    truncate_chars(text, if whole { usize::MAX } else { MESSAGE_CHARS }).into()
}

/// Truncates a text to `max_chars`, including the mark.
pub fn truncate_chars(text: &str, max_chars: usize) -> String {
    if text.chars().nth(max_chars).is_none() {
        return text.to_owned();
    }
    let head: String = text.chars().take(max_chars.saturating_sub(MARK.len())).collect();
    format!("{head}{MARK}")
}

fn metadata(task: &Task, record: Option<&Record>, syntax: CallSyntax<'_>) -> Value {
    let report = record.map(|record| &record.report);
    let mut metadata = json!({
        "duration": ran_ms(task) / 1000,
        "file_operations": files::operations(record),
        "thread_info": thread_info(task, report),
        "error_context": error_context::to_json(task, record, syntax),
    });
    if let Some(results) = report.and_then(|report| test_results(report.tests.as_ref()?)) {
        metadata["test_results"] = results;
    }
    if let Some(containment) = &task.containment {
        metadata["containment"] = containment.clone().into();
    }
    if task.state.is_terminal() {
        metadata["task_status"] = task.state.name().into();
    }
    metadata
}

/// `None` if no test was counted: uncounted tests are not zero tests. Flags are included only if they are set.
pub fn test_results(tests: &TestReport) -> Option<Value> {
    let TestReport { passed, failed, skipped, failed_tests, .. } = tests;
    let mut results = json!({
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "failed_tests": failed_tests,
    });
    if tests.failed_tests_not_listed > 0 {
        results["failed_tests_not_listed"] = tests.failed_tests_not_listed.into();
    }
    for (name, is_set) in [("incomplete", tests.incomplete), ("ended_badly", tests.ended_badly)] {
        if is_set {
            results[name] = true.into();
        }
    }
    ((*passed, *failed, *skipped) != (0, 0, 0)).then_some(results)
}

fn thread_info(task: &Task, report: Option<&Report>) -> Value {
    let usage = report.and_then(|report| report.usage.as_ref());
    json!({
        "thread_id": task.thread_id,
        "cache_hit_rate": usage.and_then(|usage| usage.cache_hit_rate),
        "token_usage": usage.map(|usage| usage.own),
    })
}

/// A running task in a list.
pub fn running(task: &TaskSummary, snapshot: Option<&Snapshot>, now_ms: i64) -> Value {
    let started_ms = task.started_at_ms.unwrap_or(task.created_at_ms);
    let value = json!({
        "task_id": task.id.as_str(),
        "state": task.state.public_name(),
        "started_ts": format_timestamp(started_ms),
        "elapsed_seconds": (now_ms - started_ms).max(0) / 1000,
        "progress": progress(snapshot),
        "containment": task.containment,
        "title": task.title,
    });
    with_labels(value, &task.labels)
}

/// Adds the labels, truncated, if there are any.
fn with_labels(mut value: Value, labels: &BTreeMap<String, String>) -> Value {
    if !labels.is_empty() {
        let shown =
            |(name, value): (&String, &String)| (name.clone(), truncate_chars(value, LABEL_CHARS).into());
        value["labels"] = Value::Object(labels.iter().map(shown).collect());
    }
    value
}

/// The progress of a task that has not ended, at most 99: the end of a turn is not the end of the task.
pub fn percent(snapshot: &Snapshot) -> Option<u8> {
    Some(snapshot.progress?.percent.min(99))
}

/// The known progress, or null.
pub fn progress(snapshot: Option<&Snapshot>) -> Value {
    let Some(snapshot) = snapshot else { return Value::Null };
    let Snapshot { progress, current_activity, .. } = snapshot;
    if progress.is_none() && current_activity.is_none() {
        return Value::Null;
    }
    json!({
        "percent": percent(snapshot).unwrap_or(0),
        "completed_steps": progress.map_or(0, |progress| progress.completed_steps),
        "total_steps": progress.map_or(0, |progress| progress.total_steps),
        "current_activity": current_activity,
    })
}

/// A task that has not ended when the wait is over.
pub fn unfinished(task: &Task, snapshot: Option<&Snapshot>) -> Value {
    let mut value = json!({
        "task_id": task.id.as_str(),
        "state": task.state.public_name(),
        "progress": progress(snapshot),
    });
    if let Some(thread) = thread(task) {
        value["thread_id"] = thread.into();
    }
    value
}

/// The thread of a task. A resuming task has it before its agent reports it.
pub fn thread(task: &Task) -> Option<&str> {
    task.thread_id.as_deref().or(task.resumed_thread.as_deref())
}

/// A task in the queue.
pub fn queued(queued: &QueuedTask) -> Value {
    let mut value = json!({
        "task_id": queued.task.id.as_str(),
        "position": queued.position,
        "title": queued.task.title,
    });
    if let Some(start_ms) = queued.estimated_start_ms {
        value["estimated_start_ms"] = start_ms.into();
    }
    if let Some(waits) = &queued.waiting_for {
        value["waiting_for"] = waiting_for(waits);
    }
    with_labels(value, &queued.task.labels)
}

/// The task that a queued task waits for, besides a free slot.
pub fn waiting_for(waits: &BlockedBy) -> Value {
    json!({"task_id": waits.task.as_str(), "reason": waits.obstacle.name()})
}

pub fn ended(task: &Task) -> Value {
    let value = json!({
        "task_id": task.id.as_str(),
        "state": task.state.public_name(),
        "duration_seconds": ran_ms(task) / 1000,
        "completed_ts": format_timestamp(task.ended.as_ref().map_or(task.updated_at_ms, |ended| ended.at_ms)),
        "title": task.title,
    });
    with_labels(value, &task.labels)
}

/// Failed and timed-out tasks always include the output, because it contains the reason.
pub fn includes_output(state: State, is_requested: bool) -> bool {
    is_requested || matches!(state, State::Failed | State::Timeout)
}
