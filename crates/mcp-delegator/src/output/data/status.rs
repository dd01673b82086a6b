//! The data of `status`: running, queued and recently ended tasks.

use schemars::JsonSchema;
use serde::Serialize;

use crate::output::data::task::{EndedTask, QueuedTask, RunningTask};
use crate::output::data::usage::Usage;
use crate::output::values::UtcTime;

/// The tool envelope omits a list without tasks.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct StatusSnapshot {
    pub summary: StatusCounts,
    #[schemars(length(min = 1), extend("x-optional" = true))]
    pub tasks: Vec<RunningTask>,
    #[schemars(length(min = 1), extend("x-optional" = true))]
    pub queue: Vec<QueuedTask>,
    #[schemars(length(min = 1), extend("x-optional" = true))]
    pub recently_completed: Vec<EndedTask>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<NotListed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queue_paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<Unread>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct StatusCounts {
    pub running: u64,
    pub queued: u64,
    pub recently_completed: u64,
}

/// Tasks beyond the length of the lists.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NotListed {
    pub running: u64,
    pub queued: u64,
}

/// Ended tasks whose results were not read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Unread {
    #[schemars(range(min = 1))]
    pub count: u64,
    pub task_ids: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct StatusFacts {
    pub snapshot_ts: UtcTime,
    /// Running and queued tasks.
    pub total: u64,
}
