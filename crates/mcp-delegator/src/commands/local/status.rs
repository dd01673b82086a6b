//! `local status`: what runs, what waits, what ended lately.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::commands::inputs::TASK_ID;
use crate::fault::ErrorCode;
use crate::registry::{Category, CommandSpec, Danger, Shape, Toolset};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    Queued,
    Working,
    Completed,
    Failed,
    Cancelled,
    Timeout,
}

/// Which tasks to show: shared by the local and the cloud command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusInputs {
    /// Only this task
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TASK_ID), extend("x-positional" = true))]
    pub task_id: Option<String>,
    /// Only tasks in or below this directory
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096), extend("x-advanced" = true))]
    pub working_dir: Option<String>,
    /// Only tasks with all of these labels
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-advanced" = true, "default" = null))]
    pub labels: BTreeMap<String, String>,
    /// Only tasks in this state
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// How many finished tasks to list
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000), extend("x-advanced" = true))]
    pub limit: u32,
    /// Add the last 5 lines of running tasks
    #[serde(default)]
    pub verbose: bool,
    /// Where to go on, from an earlier answer
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), extend("x-advanced" = true))]
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    #[serde(flatten)]
    pub of: StatusInputs,
    /// Tokens and time per task, label and day
    #[serde(default)]
    #[schemars(extend("x-advanced" = true, "x-unbuilt" = true))]
    pub usage: bool,
}

fn five() -> u32 {
    5
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Never waits.",
    category: Category::StatusSnapshot,
    shape: Shape::Show("snapshot"),
    danger: Danger::Safe,
    idempotent: true,
    toolset: Toolset::Local,
    failures: &[ErrorCode::TaskNotFound, ErrorCode::InvalidId, ErrorCode::InvalidCursor],
    ..CommandSpec::declare::<Status>(&["local", "status"], "Show running, queued and recent tasks")
};
