//! The data of an accepted task, for the commands that submit one.

use delegator_domain::named_enum;
use delegator_domain::task::SandboxKind;

use crate::output::data::agent_pauses::PauseData;
use crate::output::data::chain::FollowerData;
use crate::output::data::conversation::QuestionData;
use crate::output::data::group::GroupData;
use crate::output::data::progress::Progress;
use crate::output::data::remote::RemoteData;
use crate::output::data::status::WaitingFor;
use crate::output::data::stored_task::{state_names, thread};
use crate::output::data::task::TaskReport;
use crate::output::prelude::*;

named_enum! {
    #[derive(Default, Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Capability {
        #[default]
        Background = "background",
        Foreground = "foreground",
    }
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ExecutionAck {
    pub task_id: String,
    pub thread_id: Option<String>,
    pub accepted: bool,
    pub capability: Capability,
    pub started_at: UtcTime,
    /// The absolute directory in which the agent works; paths of files are relative to it.
    #[schemars(extend("x-optional" = true))]
    pub working_dir: String,
    /// The worktree in which an isolated task works.
    pub worktree: Option<String>,
    /// What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere.
    #[schemars(extend("enum" = SandboxKind::NAMES))]
    pub sandbox: Option<&'static str>,
    #[schemars(extend("enum" = state_names(|_| true), "x-optional" = true))]
    pub state: &'static str,
    /// Set for a task that a provider runs.
    pub remote: Option<RemoteData>,
    pub expected_duration: Option<String>,
    /// The result in one sentence, if the task has ended.
    pub summary: Option<String>,
    /// The known progress, if the call ended before the task.
    #[schemars(with = "Option<Progress>", extend("x-optional" = true))]
    pub progress: Option<Option<Progress>>,
    /// Since the start of the task, if the call ended before it.
    pub elapsed_seconds: Option<u64>,
    /// Questions of the agent that wait for an answer, if the call ended before the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting_for_answer: Vec<QuestionData>,
    /// The tasks that follow it, directly or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub followers: Vec<FollowerData>,
    /// If it is the first of several attempts, or the one that is recommended: all of them.
    #[serde(flatten)]
    #[serialize_always]
    pub group: Option<GroupData>,
    /// The result of a task that was waited for.
    #[serde(flatten)]
    #[serialize_always]
    pub report: Option<TaskReport>,
}

impl ExecutionAck {
    pub fn of(task: &Task, capability: Capability) -> ExecutionAck {
        ExecutionAck {
            task_id: task.id.to_string(),
            thread_id: thread(task).map(str::to_owned),
            accepted: true,
            capability,
            started_at: UtcTime::from_ms(task.created_at_ms),
            working_dir: task.working_dir.clone(),
            sandbox: task.sandbox.map(SandboxKind::name),
            state: task.state.public_name(),
            remote: RemoteData::of(task, None),
            ..ExecutionAck::default()
        }
    }
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct AckMeta {
    /// 0: the task has a slot.
    pub queue_position: Option<u64>,
    pub estimated_start_ms: Option<u64>,
    /// The task was submitted before, with the same idempotency key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    pub waiting_for: Option<WaitingFor>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_queue_paused: bool,
    /// Set while the agent of a queued task is paused.
    pub agent_pause: Option<PauseData>,
}
