//! `local cancel`: end a task and everything it started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::commands::inputs::OneTask;
use crate::fault::ErrorCode;
use crate::registry::{CommandSpec, Danger, Shape, Toolset};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cancel {
    #[serde(flatten)]
    pub task: OneTask,
    /// Why, for the record
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    pub reason: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Action("task_cancelled"),
    danger: Danger::Destructive,
    idempotent: true,
    toolset: Toolset::Local,
    failures: &[ErrorCode::TaskNotFound, ErrorCode::InvalidId, ErrorCode::WrongState],
    ..CommandSpec::declare::<Cancel>(&["local", "cancel"], "End a task and every process it started")
};
