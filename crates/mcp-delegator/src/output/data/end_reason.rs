//! Why a task did not complete, for the commands that show its events: an event may not say it, because the
//! agent was never started or the worker is gone. The words are our own; what the agent reported is in its
//! events.

use delegator_domain::task::{LimitKind, TaskEnd};
use delegator_registry::Task;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::sentence;
use crate::output::data::failure;
use crate::output::data::stored_task::exit_code;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EndReason {
    /// Of a failed task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_kind: Option<&'static str>,
    /// Why the task did not complete.
    pub reason: String,
}

impl EndReason {
    /// `None` if the task completed or has not ended.
    pub fn of(task: &Task) -> Option<EndReason> {
        let (failure_kind, reason) = match &task.ended.as_ref()?.end {
            TaskEnd::Completed => return None,
            TaskEnd::Failed { kind, message, .. } => {
                (Some(kind.name()), failure::describe(*kind, message, exit_code(task)).message)
            }
            TaskEnd::Cancelled { reason: Some(reason) } => (None, format!("Cancelled: {reason}")),
            TaskEnd::Cancelled { reason: None } => (None, "Cancelled".to_owned()),
            TaskEnd::Timeout(LimitKind::Idle) => (None, "Ended by the idle limit".to_owned()),
            TaskEnd::Timeout(LimitKind::Hard) => (None, "Ended by the hard limit".to_owned()),
        };
        Some(EndReason { failure_kind, reason: sentence(&reason) })
    }
}

/// The task that wrote a transcript.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EndedWriter {
    pub task_id: String,
    pub state: &'static str,
    #[serde(flatten)]
    pub end: Option<EndReason>,
}

impl EndedWriter {
    /// `None` if the task has not ended.
    pub fn of(task: &Task) -> Option<EndedWriter> {
        task.state.is_terminal().then(|| EndedWriter {
            task_id: task.id.to_string(),
            state: task.state.public_name(),
            end: EndReason::of(task),
        })
    }
}
