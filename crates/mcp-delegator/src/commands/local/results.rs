//! `local results`: what a finished task did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::commands::inputs::OneTask;
use crate::fault::ErrorCode;
use crate::registry::{Category, CommandSpec, Danger, Shape, Toolset};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    #[serde(flatten)]
    pub task: OneTask,
    /// Include output (failed tasks always do)
    #[serde(default)]
    pub include_output: bool,
    /// Include the last 50 events
    #[serde(default)]
    pub include_events: bool,
    /// Budget for the output, both streams together
    #[serde(default = "super::output_budget")]
    #[schemars(range(min = 1024, max = 1_048_576), extend("x-advanced" = true))]
    pub max_output_bytes: u32,
    /// Where to go on in the events, from an earlier answer
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), extend("x-advanced" = true))]
    pub events_cursor: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Final message, files, tests, tokens, errors. For a task that still runs use wait.",
    category: Category::ResultSet,
    shape: Shape::Show("task"),
    danger: Danger::Safe,
    idempotent: true,
    toolset: Toolset::Local,
    failures: &[
        ErrorCode::TaskNotFound,
        ErrorCode::InvalidId,
        ErrorCode::InvalidCursor,
        ErrorCode::WrongState,
    ],
    ..CommandSpec::declare::<Results>(&["local", "results"], "Show what a finished task did")
};
