//! Several attempts at one task: their ids, and how they compare.

use delegator_domain::task::{GroupId, GroupMember, State, Verification};
use delegator_engine::{ComparedAttempt, ComparedGroup};
use delegator_registry::Task;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::suggestion::NextCall;
use crate::output::data::task::{RunTimes, state_names, summary};
use crate::output::documents::document::{Block, Document, scalar, table};

/// The place of a task in a group.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MemberData {
    pub group_id: String,
    #[schemars(range(min = 1, max = 4))]
    pub attempt: u8,
}

impl From<&GroupMember> for MemberData {
    fn from(member: &GroupMember) -> MemberData {
        MemberData { group_id: member.group.to_string(), attempt: member.attempt }
    }
}

/// A group of attempts.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
pub struct GroupData {
    pub group_id: String,
    pub attempts: Vec<AttemptData>,
    /// Which attempt to take; absent if none completed, or while one has not ended.
    pub recommended_attempt: Option<u8>,
    /// Why this attempt, or why none.
    pub recommendation_reason: Option<String>,
}

/// One of the attempts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AttemptData {
    #[schemars(range(min = 1, max = 4))]
    pub attempt: u8,
    pub task_id: String,
    pub agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[schemars(extend("enum" = state_names(|_| true)))]
    pub state: &'static str,
    #[serde(flatten)]
    pub result: Option<AttemptResult>,
}

/// What an ended attempt did. What is not known is absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
pub struct AttemptResult {
    /// The result in one sentence.
    #[serde(rename = "summary")]
    #[schemars(extend("x-optional" = true))]
    pub summary: String,
    #[schemars(extend("enum" = ["verified", "verify_failed", "not_run"]))]
    pub verification: Option<&'static str>,
    pub passed_test_count: Option<u64>,
    pub failed_test_count: Option<u64>,
    pub file_count: Option<usize>,
    pub lines_added: Option<u64>,
    pub lines_deleted: Option<u64>,
    pub duration_seconds: u64,
    /// Input and output together.
    pub used_tokens: Option<i64>,
}

impl GroupData {
    /// A group whose attempts may not have ended.
    pub fn of_tasks(group: &GroupId, tasks: &[Task]) -> GroupData {
        GroupData {
            group_id: group.to_string(),
            attempts: tasks.iter().map(AttemptData::of).collect(),
            recommended_attempt: None,
            recommendation_reason: None,
        }
    }

    pub fn of_compared(group: &GroupId, compared: &ComparedGroup) -> GroupData {
        let attempt = |compared: &ComparedAttempt| AttemptData {
            result: Some(AttemptResult::of(compared)),
            ..AttemptData::of(&compared.task)
        };
        GroupData {
            group_id: group.to_string(),
            attempts: compared.attempts.iter().map(attempt).collect(),
            recommended_attempt: compared.recommendation.attempt,
            recommendation_reason: Some(compared.recommendation.reason.clone()),
        }
    }
}

impl AttemptData {
    fn of(task: &Task) -> AttemptData {
        AttemptData {
            attempt: task.group.as_ref().map_or(1, |member| member.attempt),
            task_id: task.id.to_string(),
            agent: task.agent.clone(),
            model: task.model.clone(),
            state: task.state.public_name(),
            result: None,
        }
    }
}

impl AttemptResult {
    fn of(compared: &ComparedAttempt) -> AttemptResult {
        let usage = compared.record.as_ref().and_then(|record| record.report.usage.as_ref());
        AttemptResult {
            summary: summary(&compared.task),
            verification: compared.verification.map(Verification::status),
            passed_test_count: compared.tests.map(|tests| tests.passed),
            failed_test_count: compared.tests.map(|tests| tests.failed),
            file_count: compared.changes.map(|changes| changes.files),
            lines_added: compared.changes.map(|changes| changes.lines_added),
            lines_deleted: compared.changes.map(|changes| changes.lines_deleted),
            duration_seconds: RunTimes::of(&compared.task).duration_seconds(),
            used_tokens: usage.map(|usage| usage.own.input_tokens + usage.own.output_tokens),
        }
    }
}

/// `2 of G-…`: the place of a task in its group.
pub fn member_fact(data: &Value) -> Option<(String, String)> {
    let (group, attempt) = (data["group_id"].as_str()?, data["attempt"].as_u64()?);
    Some(("attempt".to_owned(), format!("{attempt} of {group}")))
}

/// The states of the attempts of a group, in one line.
pub fn states_fact(group: &Value) -> (String, String) {
    let attempts = group["attempts"].as_array().into_iter().flatten();
    let state = |attempt: &Value| {
        let [number, task, state] = ["attempt", "task_id", "state"].map(|key| scalar(&attempt[key]));
        format!("{number}: {task} {state}")
    };
    let states: Vec<String> = attempts.map(state).collect();
    (format!("group {}", scalar(&group["group_id"])), states.join(", "))
}

/// The comparison of the attempts; before their end, only their states.
pub fn describe(data: &Value) -> Document {
    let attempts = data["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_live = |attempt: &Value| {
        let state = &attempt["state"];
        *state == State::Queued.public_name() || *state == State::Working.public_name()
    };
    let live = attempts.iter().filter(|attempt| is_live(attempt)).count();
    let id = scalar(&data["group_id"]);
    let document = match live {
        0 => Document::titled(format!("Group {id}: {} attempts ended", attempts.len())),
        _ => Document::titled(format!("Group {id}: {live} of {} attempts have not ended", attempts.len())),
    };
    append_to(document, data)
}

/// Adds the table of the attempts, the recommendation, and the next call.
pub fn append_to(mut document: Document, data: &Value) -> Document {
    let Some(attempts) = data["attempts"].as_array().filter(|_| data["group_id"].is_string()) else {
        return document;
    };
    document.blocks.extend(attempts_table(attempts));
    let Some(reason) = data["recommendation_reason"].as_str() else {
        let wait = NextCall::new(&["local", "wait"]).with("task_id", data["group_id"].clone());
        return document.block(Block::Next(wait));
    };
    match data["recommended_attempt"].as_u64() {
        Some(number) => {
            let apply = NextCall::new(&["apply"]).with("task_id", data["group_id"].clone());
            let text = format!("Recommended: attempt {number}, because {reason}.");
            document.block(Block::Text(text)).block(Block::Next(apply))
        }
        None => document.block(Block::Text(format!("No attempt is recommended: {reason}."))),
    }
}

fn attempts_table(attempts: &[Value]) -> Option<Block> {
    let compared = attempts.iter().any(|attempt| attempt.get("duration_seconds").is_some());
    let row = |attempt: &Value| {
        let cell = |key: &str| scalar(attempt.get(key).unwrap_or(&json!(null)));
        let agent = match attempt["model"].as_str() {
            Some(model) => format!("{} ({model})", cell("agent")),
            None => cell("agent"),
        };
        let mut cells = vec![cell("attempt"), cell("task_id"), agent, cell("state")];
        if compared {
            let pair = |one: &str, other: &str, text: fn(String, String) -> String| match attempt.get(one) {
                Some(_) => text(cell(one), cell(other)),
                None => "-".to_owned(),
            };
            cells.push(cell("verification"));
            cells.push(pair("passed_test_count", "failed_test_count", |passed, failed| {
                format!("{passed} passed, {failed} failed")
            }));
            cells.push(cell("file_count"));
            cells.push(pair("lines_added", "lines_deleted", |added, deleted| format!("+{added} -{deleted}")));
            cells.push(cell("duration_seconds"));
            cells.push(cell("used_tokens"));
        }
        cells
    };
    let rows = attempts.iter().map(row).collect();
    let columns =
        ["attempt", "task", "agent", "state", "verify", "tests", "files", "lines", "seconds", "used_tokens"];
    table(if compared { &columns } else { &columns[..4] }, rows)
}
