//! The document of a task: key facts first, then labelled quotes of the agent, the next useful call last.

use delegator_domain::task::SandboxKind;
use delegator_domain::terminal::escape_line_breaks;
use serde_json::Value;

use crate::error::suggestion::NextCall;
use crate::output::data::progress::{described_counts, described_percent};
use crate::output::data::{chain, denied_write, events, files, final_message, findings, group, verification};
use crate::output::documents::document::{Block, Document, facts, scalar, table};
use crate::output::documents::{agent_output, conversation};

/// Names in a list; the others are only counted.
const MAX_FILES: usize = 20;
/// Error locations that are shown.
const MAX_LOCATIONS: usize = 3;

/// An accepted submission.
pub fn accepted(data: &Value) -> Document {
    let mut facts = facts(
        data,
        &[
            ("state", "/state"),
            ("directory", "/working_dir"),
            ("environment", "/remote/environment"),
            ("page", "/remote/url"),
            ("thread", "/thread_id"),
            ("runs in", "/capability"),
            ("expected duration", "/expected_duration"),
        ],
    );
    facts.extend(sandbox_fact(data));
    facts.extend(progress_facts(data));
    let document = match data["group_id"].as_str() {
        Some(group) => Document::titled(format!("Group {group} accepted")),
        None => Document::titled(format!("Task {} accepted", text(data, "task_id"))),
    };
    let document = conversation::append_questions(document.block(Block::Facts(facts)), data);
    let document = chain::append_to(document, data);
    match data.get("metadata") {
        Some(_) => group::append_to(chain::append_to(result(data), data), data),
        None if data["group_id"].is_string() => group::append_to(document, data),
        // Also for a task that has ended already: waiting for it returns its result.
        None => document.block(next_wait(data)),
    }
}

/// The result of a task, or its progress.
pub fn result(data: &Value) -> Document {
    if data["group_id"].is_string() && data["task_id"].is_null() {
        return group::describe(data);
    }
    match data["tasks"].as_array().map(Vec::as_slice) {
        None => single(data),
        Some([only]) => single(only),
        Some(tasks) => several(tasks),
    }
}

fn single(data: &Value) -> Document {
    let state = text(data, "state");
    let document = Document::titled(format!("Task {} {state}", text(data, "task_id")));
    if matches!(state, "queued" | "working") {
        let mut known = facts(
            data,
            &[
                ("directory", "/working_dir"),
                ("environment", "/remote/environment"),
                ("page", "/remote/url"),
                ("thread", "/thread_id"),
            ],
        );
        known.extend(sandbox_fact(data));
        known.extend(progress_facts(data));
        known.extend(message_counts(data));
        let document = conversation::append_messages(document.block(Block::Facts(known)), data);
        return conversation::append_questions(document, data).block(next_wait(data));
    }
    append_result(document, data)
}

/// Everything that is known about an ended task.
fn append_result(document: Document, data: &Value) -> Document {
    let document = document.block(Block::Facts(result_facts(data)));
    let mut document = failure(document, &data["metadata"]["error_context"]);
    document = violations(document, data);
    document = findings::append_to(document, data);
    document = verification::append_to(document, data);
    document = denied_write::append_to(document, data);
    if let Some(message) = data["metadata"]["error_context"]["agent_message"].as_str() {
        document = append_quote(document, "Reported by the agent:", message);
    }
    let (message, stdout) = agent_output::distinct_texts(data);
    if let Some(message) = message {
        document = append_message(document, "The agent's final message", message, data);
    }
    document = append_diff(conversation::append_messages(document, data), &data["diff"]);
    document = chain::append_to(document, data);
    events::append_to(agent_output::append_to(document, data, stdout), data)
}

/// The diff of a cloud task; if a part is missing, how to read all of it.
fn append_diff(document: Document, diff: &Value) -> Document {
    let Some(shown) = diff["text"].as_str() else { return document };
    let document = document.block(Block::Verbatim(shown.to_owned()));
    match diff["is_truncated"].as_bool() {
        Some(true) => document.block(Block::Text(format!(
            "Parts of this diff of {} bytes are left out; the command 'diff' prints all of it.",
            scalar(&diff["bytes"])
        ))),
        _ => document,
    }
}

/// The final message of a task; if a part is missing, how much it is and how to read it.
fn append_message(document: Document, label: &str, message: &str, task: &Value) -> Document {
    let document = append_quote(document, &format!("{label}{}:", final_message::extent(task)), message);
    match final_message::hint(task) {
        Some(hint) => document.block(Block::Text(hint.to_owned())),
        None => document,
    }
}

/// What enforces the mode, unless it is the agent's own sandbox.
pub fn sandbox_fact(task: &Value) -> Option<(String, String)> {
    let name = task["sandbox"].as_str().filter(|name| *name != SandboxKind::Agent.name())?;
    Some(("sandbox".to_owned(), name.to_owned()))
}

/// Elapsed time, activity, percentage and counts of a task that has not ended.
fn progress_facts(data: &Value) -> Vec<(String, String)> {
    let progress = &data["progress"];
    let elapsed = data["elapsed_seconds"].as_u64().map(|seconds| format!("{seconds} s"));
    let activity = progress["current_activity"].as_str().map(str::to_owned);
    let known = [
        ("elapsed", elapsed),
        ("activity", activity),
        ("progress", described_percent(progress)),
        ("so far", described_counts(progress)),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn result_facts(data: &Value) -> Vec<(String, String)> {
    let mut result = facts(
        data,
        &[
            ("summary", "/summary"),
            ("seconds", "/metadata/duration"),
            ("directory", "/working_dir"),
            ("environment", "/remote/environment"),
            ("page", "/remote/url"),
            ("worker", "/remote/worker"),
            ("branch", "/remote/branch"),
            ("started from", "/remote/base_commit"),
            ("pushed to", "/remote/pushed_branch"),
        ],
    );
    result.extend(sandbox_fact(data));
    result.extend(chain::follows_fact(data));
    result.extend(group::member_fact(data));
    for (name, key) in
        [("modified", "modified_files"), ("added", "added_files"), ("deleted", "deleted_files")]
    {
        let mut files = data["metadata"]["file_operations"][key].as_array().cloned().unwrap_or_default();
        // They have their own line.
        let unattributed = data["metadata"]["file_operations"]["unattributed_files"].as_array();
        files.retain(|file| unattributed.is_none_or(|others| !others.contains(file)));
        if !files.is_empty() {
            result.push((name.to_owned(), join_files(&files)));
        }
    }
    result.extend(files::outline(data));
    result.extend(tests(&data["metadata"]["test_results"]));
    let more = [
        ("thread", "/metadata/thread_info/thread_id"),
        ("input tokens", "/metadata/thread_info/token_usage/input_tokens"),
        ("output tokens", "/metadata/thread_info/token_usage/output_tokens"),
        ("failure", "/metadata/error_context/failure_kind"),
        ("error", "/metadata/error_context/error_message"),
        ("retry at", "/metadata/error_context/retry_at"),
    ];
    result.extend(facts(data, &more));
    if files::may_have_changes(data) {
        let commands = [
            ("changes", "/diff_command"),
            ("worktree", "/worktree"),
            ("apply", "/apply_command"),
            ("revert", "/restore_point/restore_command"),
        ];
        result.extend(facts(data, &commands));
    }
    let exit_code = data["agent_exit_code"].as_i64().filter(|code| *code != 0);
    result.extend(exit_code.map(|code| ("exit code".to_owned(), code.to_string())));
    result.extend(message_counts(data));
    result.extend(labels(data).map(|labels| ("labels".to_owned(), labels)));
    result.retain(|(_, value)| value != "-");
    result
}

fn message_counts(data: &Value) -> Option<(String, String)> {
    conversation::message_counts(data).map(|counts| ("messages".to_owned(), counts))
}

/// `tests: 47 passed, 1 failed, 2 skipped`, and the names of the failed tests.
pub fn tests(results: &Value) -> Vec<(String, String)> {
    let count = |name: &str| results[name].as_u64().unwrap_or(0);
    if !results.is_object() {
        return Vec::new();
    }
    let mut line =
        format!("{} passed, {} failed, {} skipped", count("passed"), count("failed"), count("skipped"));
    if results["is_incomplete"] == true {
        line.push_str("; the count is incomplete");
    }
    if results["has_ended_badly"] == true {
        line.push_str("; a test command failed although none of its tests did");
    }
    let mut facts = vec![("tests".to_owned(), line)];
    let names = results["failed_tests"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !names.is_empty() {
        facts.push(("failed tests".to_owned(), join_files(names)));
    }
    facts
}

/// Error locations and suggestions.
fn failure(document: Document, context: &Value) -> Document {
    let none = Vec::new();
    let locations = context["error_locations"].as_array().unwrap_or(&none).iter().take(MAX_LOCATIONS);
    let shown: Vec<String> = locations.map(format_location).collect();
    let suggested = context["suggestions"].as_array().unwrap_or(&none).iter();
    let suggested: Vec<_> = suggested.map(|text| ("suggestion".to_owned(), scalar(text))).collect();
    let document = match shown.is_empty() {
        true => document,
        false => append_quote(document, "Where its commands failed:", &shown.join("\n")),
    };
    match suggested.is_empty() {
        true => document,
        false => document.block(Block::Facts(suggested)),
    }
}

fn format_location(location: &Value) -> String {
    let column = location["column"].as_u64().map(|column| format!(":{column}")).unwrap_or_default();
    let kind = location["kind"].as_str().map(|kind| format!("{kind}: ")).unwrap_or_default();
    format!(
        "{}:{}{column}: {kind}{} ({})",
        text(location, "file"),
        scalar(&location["line"]),
        text(location, "message"),
        text(location, "command")
    )
}

/// The violations of the output schema.
fn violations(document: Document, data: &Value) -> Document {
    let Some(violations) = data["structured_output_violations"].as_array() else { return document };
    let line = |violation: &Value| match text(violation, "path") {
        "" => text(violation, "problem").to_owned(),
        path => format!("{path}: {}", text(violation, "problem")),
    };
    let lines: Vec<String> = violations.iter().map(line).collect();
    append_quote(document, "The final message does not match the output schema:", &lines.join("\n"))
}

fn join_files(files: &[Value]) -> String {
    let name = |file: &Value| escape_line_breaks(&scalar(file));
    let names: Vec<String> = files.iter().take(MAX_FILES).map(name).collect();
    match files.len().saturating_sub(MAX_FILES) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// A table of several tasks, then the results of those that have ended.
fn several(tasks: &[Value]) -> Document {
    let is_ended = |task: &&Value| !matches!(text(task, "state"), "queued" | "working");
    let ended: Vec<&Value> = tasks.iter().filter(is_ended).collect();
    let common = common_directory(tasks.iter());
    let row = |task: &Value| {
        let activity = task["summary"].as_str().or(task["progress"]["current_activity"].as_str());
        vec![
            text(task, "task_id").to_owned(),
            text(task, "state").to_owned(),
            activity.unwrap_or("-").to_owned(),
            directory_cell(task, common),
        ]
    };
    let mut document = match tasks.is_empty() {
        true => Document::titled("No task to wait for"),
        false => Document::titled(format!("{} of {} tasks ended", ended.len(), tasks.len())),
    };
    let rows = tasks.iter().map(row).collect();
    document.blocks.extend(table(&["task", "state", "summary", "directory"], rows));
    // Facts about the call are added to the first block of facts, so there is one before those of the tasks.
    document = document.block(common.map_or(Block::Facts(Vec::new()), directory_fact));
    for task in tasks.iter().filter(|task| task.get("waiting_for_answer").is_some()) {
        let label = format!("Task {} waits for an answer:", text(task, "task_id"));
        document = conversation::append_questions(document.block(Block::Text(label)), task);
    }
    for task in ended {
        let label = format!("Task {} {}:", text(task, "task_id"), text(task, "state"));
        document = append_result(document.block(Block::Text(label)), task);
    }
    document
}

/// The task that a queued task waits for, and why.
pub fn format_waiting_for(waiting_for: &Value) -> Option<String> {
    let task = waiting_for["task_id"].as_str()?;
    Some(match waiting_for["reason"].as_str() {
        Some(reason) => format!("{task} ({reason})"),
        None => task.to_owned(),
    })
}

/// The directory in which all of these tasks work. If they differ, each has a cell with its own.
pub fn common_directory<'a>(tasks: impl Iterator<Item = &'a Value>) -> Option<&'a str> {
    let mut directories = tasks.filter_map(|task| task["working_dir"].as_str());
    let first = directories.next()?;
    directories.all(|directory| directory == first).then_some(first)
}

pub fn directory_cell(task: &Value, common: Option<&str>) -> String {
    match common {
        Some(_) => "-".to_owned(),
        None => scalar(&task["working_dir"]),
    }
}

pub fn directory_fact(directory: &str) -> Block {
    Block::Facts(vec![("directory".to_owned(), directory.to_owned())])
}

/// `team=parser, ticket=7`.
pub fn labels(data: &Value) -> Option<String> {
    let labels = data["labels"].as_object().filter(|labels| !labels.is_empty())?;
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={}", scalar(value))).collect();
    Some(pairs.join(", "))
}

fn append_quote(document: Document, label: &str, text: &str) -> Document {
    document.block(Block::Text(label.to_owned())).block(Block::Verbatim(text.to_owned()))
}

fn next_wait(data: &Value) -> Block {
    Block::Next(NextCall::new(&["local", "wait"]).with("task_id", data["task_id"].clone()))
}

fn text<'a>(data: &'a Value, key: &str) -> &'a str {
    data[key].as_str().unwrap_or("-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_that_another_changed_is_not_listed_as_a_change_of_the_agent() {
        let operations = json!({"modified_files": ["a.txt", "c.txt"], "unattributed_files": ["c.txt"]});
        let facts = result_facts(&json!({"metadata": {"file_operations": operations}}));
        let expected = [("modified", "a.txt"), ("not attributed to the agent", "c.txt")];
        assert_eq!(facts, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
