//! `local wait`: until a task ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commands::inputs::TASK_ID;
use crate::fault::{ErrorCode, Problem};
use crate::registry::{Category, CommandSpec, Danger, Shape, Toolset};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    #[default]
    All,
    Any,
}

fn task_id_item() -> Value {
    json!({"type": "string", "pattern": TASK_ID})
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// The task (or task_ids)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TASK_ID), extend("x-positional" = true))]
    pub task_id: Option<String>,
    /// Several tasks
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = task_id_item(), "default" = null))]
    pub task_ids: Vec<String>,
    /// With task_ids: when all have ended, or the first
    #[serde(default)]
    pub until: Until,
    /// Seconds to wait; on the command line unlimited unless given
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3600), extend("x-default" = 50))]
    pub timeout_sec: Option<u32>,
    /// Include output
    #[serde(default)]
    pub include_output: bool,
    /// Budget for that output, both streams together
    #[serde(default = "super::output_budget")]
    #[schemars(range(min = 1024, max = 1_048_576), extend("x-advanced" = true))]
    pub max_output_bytes: u32,
    /// Answer with an error when the task did not complete (exit 80, 10 or 130)
    #[serde(default)]
    #[schemars(extend("x-advanced" = true))]
    pub exit_status: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Answers as soon as it ends. If the time is over first, the state is working: call again.",
    category: Category::WaitResult,
    shape: Shape::Show("task"),
    danger: Danger::Safe,
    idempotent: true,
    open_ended: true,
    toolset: Toolset::Local,
    failures: &[
        ErrorCode::TaskNotFound,
        ErrorCode::InvalidId,
        ErrorCode::Incomplete,
        ErrorCode::AgentFailed,
        ErrorCode::TimeoutIdle,
        ErrorCode::TimeoutHard,
    ],
    check,
    ..CommandSpec::declare::<Wait>(&["local", "wait"], "Wait until a task ends")
};

pub fn check(input: &Value) -> Vec<Problem> {
    let several = input.get("task_ids").and_then(Value::as_array).is_some_and(|ids| !ids.is_empty());
    match (input.get("task_id").is_some(), several) {
        (true, true) => vec![
            Problem::new(ErrorCode::InvalidValue, "task_ids", "cannot be given together with task_id")
                .suggest(Some("Put all ids into task_ids.")),
        ],
        (false, false) => vec![Problem::new(ErrorCode::MissingArgument, "task_id", "is missing")],
        _ => Vec::new(),
    }
}
