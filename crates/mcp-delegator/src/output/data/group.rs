//! Several attempts at one task: their ids, and how they compare.

use delegator_domain::task::{GroupId, GroupMember, Verification};
use delegator_engine::{ComparedAttempt, ComparedGroup};

use crate::output::command_data::CommandData;
use crate::output::data::stored_task::{RunTimes, end_name, state_names, summary};
use crate::output::prelude::*;

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
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GroupData {
    pub group_id: String,
    pub attempts: Vec<AttemptData>,
    /// Which attempt to take; absent if none completed, or while one has not ended.
    pub recommended_attempt: Option<u8>,
    /// Why this attempt, or why none.
    pub recommendation_reason: Option<String>,
}

/// One of the attempts.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AttemptData {
    #[schemars(range(min = 1, max = 4))]
    pub attempt: u8,
    pub task_id: String,
    pub agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[schemars(extend("enum" = state_names(|_| true)))]
    pub state: &'static str,
    /// The state, or that the check failed.
    #[serde(skip)]
    pub end: &'static str,
    #[serde(flatten)]
    pub result: Option<AttemptResult>,
}

/// What an ended attempt did. What is not known is absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
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

const COLUMNS: [&str; 10] =
    ["attempt", "task", "agent", "state", "verify", "tests", "files", "lines", "seconds", "used_tokens"];

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

    pub fn states_fact(&self) -> (String, String) {
        let state =
            |attempt: &AttemptData| format!("{}: {} {}", attempt.attempt, attempt.task_id, attempt.end);
        let states: Vec<String> = self.attempts.iter().map(state).collect();
        (format!("group {}", self.group_id), states.join(", "))
    }

    pub fn append_to(&self, document: Document) -> Document {
        let document =
            document.table(self.columns(), self.attempts.iter().map(|row| self.row(row)).collect());
        let next = |command| Block::Next(NextCall::for_task(command, self.group_id.as_str()));
        let Some(reason) = &self.recommendation_reason else {
            return document.block(next(&["local", "wait"]));
        };
        match self.recommended_attempt {
            Some(number) => document
                .text(format!("Recommended: attempt {number}, because {reason}."))
                .block(next(&["apply"])),
            None => document.text(format!("No attempt is recommended: {reason}.")),
        }
    }

    fn is_compared(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.result.is_some())
    }

    fn columns(&self) -> &'static [&'static str] {
        if self.is_compared() { &COLUMNS } else { &COLUMNS[..4] }
    }

    fn row(&self, attempt: &AttemptData) -> Vec<String> {
        let agent = match &attempt.model {
            Some(model) => format!("{} ({model})", attempt.agent),
            None => attempt.agent.clone(),
        };
        let (number, state) = (attempt.attempt.to_string(), attempt.end.to_owned());
        let mut cells = vec![number, attempt.task_id.clone(), agent, state];
        if self.is_compared() {
            let unknown = || std::array::from_fn(|_| "-".to_owned());
            cells.extend(attempt.result.as_ref().map_or_else(unknown, AttemptResult::cells));
        }
        cells
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
            end: end_name(task),
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

    fn cells(&self) -> [String; 6] {
        let passed_and_failed = self.passed_test_count.zip(self.failed_test_count);
        let tests = passed_and_failed.map(|(passed, failed)| format!("{passed} passed, {failed} failed"));
        let added_and_deleted = self.lines_added.zip(self.lines_deleted);
        let lines = added_and_deleted.map(|(added, deleted)| format!("+{added} -{deleted}"));
        [
            cell(self.verification.as_ref()),
            cell(tests.as_ref()),
            cell(self.file_count.as_ref()),
            cell(lines.as_ref()),
            self.duration_seconds.to_string(),
            cell(self.used_tokens.as_ref()),
        ]
    }
}

impl MemberData {
    /// `2 of G-…`.
    pub fn text(&self) -> String {
        format!("{} of {}", self.attempt, self.group_id)
    }
}

impl CommandData for GroupData {
    /// The comparison of the attempts; before their end, only their states.
    fn document(&self) -> Document {
        let (id, count) = (&self.group_id, self.attempts.len());
        let is_live = |attempt: &&AttemptData| {
            [State::Queued, State::Working].iter().any(|state| state.public_name() == attempt.state)
        };
        let title = match self.attempts.iter().filter(is_live).count() {
            0 => format!("Group {id}: {count} attempts ended"),
            live => format!("Group {id}: {live} of {count} attempts have not ended"),
        };
        self.append_to(Document::titled(title))
    }
}
