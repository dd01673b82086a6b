//! The document of `status`: running, queued and recently ended tasks. Callers request it often, so cells are short and
//! empty columns are omitted: one task fits in 600 bytes. Columns are ordered by importance: a narrow terminal omits the last.

use serde_json::Value;

use crate::error::suggestion::{NextCall, Suggestion};
use crate::output::data::agent_pauses::format_pause;
use crate::output::data::progress::{described_counts, described_percent};
use crate::output::data::status::{ENDED, QUEUED, RUNNING};
use crate::output::data::{estimate, group, usage};
use crate::output::documents::conversation;
use crate::output::documents::document::{Block, Document, scalar, table, truncate_cell};
use crate::output::documents::task as task_document;

/// Maximum bytes of cells with foreign text.
const MAX_TITLE_BYTES: usize = 100;
const MAX_ACTIVITY_BYTES: usize = 80;
const MAX_LABELS_BYTES: usize = 50;
/// Unread results that are listed; the others are only counted.
const MAX_UNREAD_IDS: usize = 3;

pub fn snapshot(data: &Value) -> Document {
    let first = NextCall::new(&["local", "run"]).with("task", "Explain what this project does.");
    overview(data, Suggestion::with_call("Start a task that only reads: {call}", first))
}

/// The document of `cloud status`.
pub fn cloud_snapshot(data: &Value) -> Document {
    let environments = NextCall::new(&["cloud", "list-environments"]);
    overview(data, Suggestion::with_call("List the environments for cloud tasks: {call}", environments))
}

/// `first_step` is for people without tasks.
fn overview(data: &Value, first_step: Suggestion) -> Document {
    let mut document = Document::titled(headline(data));
    let lists = [RUNNING, QUEUED, ENDED];
    let common = task_document::common_directory(lists.iter().flat_map(|list| items(data, list)));
    let tables = [running(data, common), queued(data, common), not_listed(data), ended(data, common)];
    document.blocks.extend(tables.into_iter().flatten());
    document.blocks.extend(common.map(task_document::directory_fact));
    if let Some(worktree) = data.get("worktree") {
        document = document.block(Block::Facts(vec![("worktree".to_owned(), scalar(worktree))]));
    }
    let groups: Vec<(String, String)> = items(data, "groups").map(group::states_fact).collect();
    if !groups.is_empty() {
        document = document.block(Block::Facts(groups));
    }
    if let Some(unread) = data.get("unread") {
        document = document.block(Block::Facts(vec![("unread results".to_owned(), unread_ids(unread))]));
    }
    if let Some(cloud) = data.get("cloud") {
        document = document.block(Block::Facts(vec![("cloud tasks".to_owned(), cloud_tasks(cloud))]));
    }
    let pauses = items(data, "agent_pauses");
    let paused = pauses.map(|pause| (format!("{} paused", scalar(&pause["agent"])), format_pause(pause)));
    let paused: Vec<(String, String)> = paused.collect();
    if !paused.is_empty() {
        document = document.block(Block::Facts(paused));
    }
    for task in items(data, "tasks") {
        if task.get("waiting_for_answer").is_some() {
            let label = format!("{} waits for an answer.", scalar(&task["task_id"]));
            document = conversation::append_questions(document.block(Block::Text(label)), task);
        }
    }
    for task in lists.iter().flat_map(|list| items(data, list)) {
        document = conversation::append_messages(document, task);
    }
    for task in items(data, "tasks") {
        let lines: Vec<&str> = items(task, "last_lines").filter_map(Value::as_str).collect();
        if !lines.is_empty() {
            let label = format!("Last lines of {}:", scalar(&task["task_id"]));
            document = document.block(Block::Text(label)).block(Block::Verbatim(lines.join("\n")));
        }
    }
    document = usage::blocks(&data["usage"]).into_iter().fold(document, Document::block);
    document.blocks.extend(next_call(data));
    if lists.iter().all(|list| items(data, list).next().is_none()) && data.get("cloud").is_none() {
        document = document.block(Block::ForPeople(first_step));
    }
    document
}

/// A wait for the only task that has not ended; if there is none, the results of an unread task, or else the list of the
/// cloud tasks.
fn next_call(data: &Value) -> Option<Block> {
    let next = |command, id: &Value| Block::Next(NextCall::new(command).with("task_id", id.clone()));
    let mut unfinished = items(data, RUNNING).chain(items(data, QUEUED));
    match (unfinished.next(), unfinished.next()) {
        (Some(only), None) => Some(next(&["local", "wait"], &only["task_id"])),
        (Some(_), Some(_)) => None,
        (None, _) => match items(&data["unread"], "task_ids").next() {
            Some(id) => Some(next(&["local", "results"], id)),
            None => data.get("cloud").map(|_| Block::Next(NextCall::new(&["cloud", "status"]))),
        },
    }
}

fn items<'a>(data: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    data[key].as_array().into_iter().flatten()
}

fn headline(data: &Value) -> String {
    let count = |key: &str| data["summary"][key].as_u64().unwrap_or(0);
    if ["running", "queued", "recently_completed"].map(count) == [0; 3] && data["is_queue_paused"] != true {
        let here = if data.get("cloud").is_some() { " of this machine" } else { "" };
        return format!("No task{here} is running, queued or ended in the last 24 hours");
    }
    let paused = if data["is_queue_paused"] == true { " (the queue is paused)" } else { "" };
    format!(
        "{} running, {} queued{paused}, {} ended in the last 24 hours",
        count("running"),
        count("queued"),
        count("recently_completed")
    )
}

fn activity(task: &Value) -> String {
    match task["waiting_for_answer"].as_array().is_some_and(|open| !open.is_empty()) {
        true => "Waiting for an answer".to_owned(),
        false => truncate_cell(&scalar(&task["progress"]["current_activity"]), MAX_ACTIVITY_BYTES),
    }
}

fn running(data: &Value, common_directory: Option<&str>) -> Option<Block> {
    let row = |task: &Value| {
        vec![
            scalar(&task["task_id"]),
            title(task),
            scalar(&task["elapsed_seconds"]),
            progress_cell(&task["progress"]),
            activity(task),
            conversation::message_counts(task).unwrap_or_else(|| "-".to_owned()),
            labels(task),
            sandbox(task),
            task_document::directory_cell(task, common_directory),
        ]
    };
    table(
        &["running", "task", "seconds", "progress", "activity", "messages", "labels", "sandbox", "directory"],
        items(data, "tasks").map(row).collect(),
    )
}

/// The percentage; if it is unknown, what the agent has done so far.
fn progress_cell(progress: &Value) -> String {
    described_percent(progress).or_else(|| described_counts(progress)).unwrap_or_else(|| "-".to_owned())
}

fn queued(data: &Value, common_directory: Option<&str>) -> Option<Block> {
    let row = |task: &Value| {
        let start =
            task["estimated_start_ms"].as_u64().map_or_else(|| "-".to_owned(), estimate::format_duration);
        let waits = task_document::format_waiting_for(&task["waiting_for"]);
        let paused = || Some(format!("{} (paused)", task["agent_pause"]["agent"].as_str()?));
        let waits = waits.or_else(paused).unwrap_or_else(|| "-".to_owned());
        let messages = conversation::message_counts(task).unwrap_or_else(|| "-".to_owned());
        let directory = task_document::directory_cell(task, common_directory);
        // As in the acknowledgement of a task: 1 is the next.
        let position = task["position"].as_u64().map_or_else(|| "-".to_owned(), |at| (at + 1).to_string());
        let id = scalar(&task["task_id"]);
        vec![id, title(task), position, waits, start, messages, labels(task), sandbox(task), directory]
    };
    table(
        &[
            "queued",
            "task",
            "position",
            "waits for",
            "starts in",
            "messages",
            "labels",
            "sandbox",
            "directory",
        ],
        items(data, "queue").map(row).collect(),
    )
}

fn ended(data: &Value, common_directory: Option<&str>) -> Option<Block> {
    let row = |task: &Value| {
        let [id, state, seconds] = ["task_id", "state", "duration_seconds"].map(|key| scalar(&task[key]));
        let directory = task_document::directory_cell(task, common_directory);
        vec![id, state, title(task), seconds, labels(task), sandbox(task), directory]
    };
    table(
        &["ended", "state", "task", "seconds", "labels", "sandbox", "directory"],
        items(data, "recently_completed").map(row).collect(),
    )
}

fn sandbox(task: &Value) -> String {
    task_document::sandbox_fact(task).map_or_else(|| "-".to_owned(), |(_, name)| name)
}

fn title(task: &Value) -> String {
    truncate_cell(&scalar(&task["title"]), MAX_TITLE_BYTES)
}

fn labels(task: &Value) -> String {
    truncate_cell(&task_document::labels(task).unwrap_or_else(|| "-".to_owned()), MAX_LABELS_BYTES)
}

fn not_listed(data: &Value) -> Option<Block> {
    let more = data.get("not_listed")?;
    Some(Block::Text(format!(
        "{} running and {} queued tasks are not listed: filter by working_dir, labels or state.",
        scalar(&more["running_count"]),
        scalar(&more["queued_count"])
    )))
}

fn cloud_tasks(cloud: &Value) -> String {
    let counts = [("unfinished_count", "unfinished"), ("unread_count", "unread")];
    let counts = counts.iter().filter(|(key, _)| cloud[*key] != 0);
    let counts: Vec<String> = counts.map(|(key, name)| format!("{} {name}", scalar(&cloud[*key]))).collect();
    format!("{}; cloud status lists them", counts.join(", "))
}

fn unread_ids(unread: &Value) -> String {
    let count = unread["count"].as_u64().unwrap_or(0);
    let ids: Vec<String> = items(unread, "task_ids").take(MAX_UNREAD_IDS).map(scalar).collect();
    match count.saturating_sub(ids.len() as u64) {
        0 => ids.join(", "),
        more => format!("{} and {more} more", ids.join(", ")),
    }
}
