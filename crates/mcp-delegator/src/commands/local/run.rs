//! `local run`: delegate a task and stay with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::AGENT_FAILURES;
use crate::commands::inputs::{AgentInputs, Submission, check_agent_inputs};
use crate::fault::{ErrorCode, Problem};
use crate::registry::{Category, CommandSpec, Shape, Toolset};

/// How far the agent may go; `preview` plans and does not act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunMode {
    #[default]
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
    Preview,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    #[serde(flatten)]
    pub submission: Submission,
    /// How far the agent may go
    #[serde(default)]
    pub mode: RunMode,
    /// Required for the two write modes
    #[serde(default)]
    pub confirm: bool,
    /// Answer at once
    #[serde(default, rename = "async")]
    pub is_async: bool,
    #[serde(flatten)]
    pub agent: AgentInputs,
    /// Answer with what there is after this many seconds; the task goes on
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400), extend("x-advanced" = true))]
    pub call_budget_sec: Option<u32>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Answers when it ends or the call budget is over; the task goes on.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_run"),
    network: true,
    open_ended: true,
    toolset: Toolset::Local,
    failures: AGENT_FAILURES,
    check,
    ..CommandSpec::declare::<Run>(&["local", "run"], "Delegate a coding task and stay with it")
};

fn check(input: &Value) -> Vec<Problem> {
    let mut problems = check_agent_inputs(input);
    let writes =
        matches!(input.get("mode").and_then(Value::as_str), Some("workspace-write" | "danger-full-access"));
    if writes && input.get("confirm") != Some(&Value::Bool(true)) {
        problems.push(
            Problem::new(ErrorCode::ConfirmationRequired, "confirm", "must be true for a mode that writes")
                .suggest(Some("Set confirm to true, or use mode read-only or preview.")),
        );
    }
    problems
}
