//! A task of the live view in our JSON: a row of a list, and what a person decides by.

use delegator_domain::attention::Section;
use delegator_domain::task::Verification;
use delegator_engine::{LiveOverall, LiveRow, LiveTask};
use delegator_registry::AgentPause;

use crate::output::data::agent_pauses::PauseData;
use crate::output::data::conversation::Conversation;
use crate::output::data::status::ListedTask;
use crate::output::data::task_line::{Clock, TaskLine};
use crate::output::prelude::*;

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LiveTaskData {
    #[serde(flatten)]
    pub task: ListedTask,
    pub agent: String,
    /// The state in words, as a person reads it: the question, the current activity, what it waits for, or how it
    /// ended.
    pub line: String,
    /// The group or chain with which it was submitted.
    pub submission_id: Option<String>,
    /// The section of that group or chain as a whole.
    pub submission_section: Option<&'static str>,
    /// The result of its verify command, if it has ended and has one.
    #[schemars(extend("enum" = ["verified", "verify_failed", "not_run"]))]
    pub verification: Option<&'static str>,
    /// It has ended, and its result was not read.
    pub is_unread: bool,
    pub lines_added: Option<u64>,
    pub lines_deleted: Option<u64>,
    pub cost_microdollars: Option<u64>,
    #[serde(flatten)]
    pub conversation: Conversation,
}

/// What concerns no single task.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LiveOverallData {
    pub is_queue_paused: bool,
    /// Agents of which no queued task starts for now.
    pub agent_pauses: Vec<PauseData>,
    /// All tasks that have not ended.
    pub unfinished_count: u64,
    pub unread_count: u64,
    /// Why the tasks could not be read; they are shown as they were before.
    pub problem: Option<String>,
}

impl LiveTaskData {
    pub fn of(live: &LiveTask, is_queue_paused: bool, clock: Clock<'_>) -> LiveTaskData {
        let task = match &live.row {
            LiveRow::Running(running) => {
                ListedTask::running(running, !live.questions.is_empty(), clock.now_ms)
            }
            LiveRow::Queued(queued) => ListedTask::queued(queued),
            LiveRow::Stored(task) => ListedTask::stored(task),
        };
        let verification = match &live.row {
            LiveRow::Stored(task) => task.ended.as_ref().and_then(|ended| ended.verification),
            LiveRow::Running(_) | LiveRow::Queued(_) => None,
        };
        let line = TaskLine::live(live, is_queue_paused, clock);
        LiveTaskData {
            task: ListedTask { section: live.section.name(), ..task },
            agent: line.agent,
            line: line.state,
            submission_id: line.submission.map(|subject| subject.id().to_owned()),
            submission_section: live.submission_section.map(Section::name),
            verification: verification.map(Verification::status),
            is_unread: line.is_unread,
            lines_added: line.lines.map(|lines| lines.added),
            lines_deleted: line.lines.map(|lines| lines.deleted),
            cost_microdollars: line.cost_microdollars,
            conversation: Conversation::of(&live.questions, &live.messages),
        }
    }
}

impl From<&LiveOverall> for LiveOverallData {
    fn from(overall: &LiveOverall) -> LiveOverallData {
        LiveOverallData {
            is_queue_paused: overall.is_queue_paused,
            agent_pauses: overall.agent_pauses.iter().map(|pause: &AgentPause| pause.into()).collect(),
            unfinished_count: overall.unfinished_total,
            unread_count: overall.unread_total,
            problem: overall.problem.clone(),
        }
    }
}
