//! `local exec`: delegate a task and let go of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AGENT_FAILURES;
use crate::commands::inputs::{AgentInputs, Mode, Submission, check_agent_inputs};
use crate::registry::{Category, CommandSpec, Shape, Toolset};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exec {
    #[serde(flatten)]
    pub submission: Submission,
    /// How far the agent may go
    #[serde(default)]
    pub mode: Mode,
    #[serde(flatten)]
    pub agent: AgentInputs,
    /// How many agents try it, each in a worktree of its own
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4), extend("x-advanced" = true, "x-unbuilt" = true))]
    pub attempts: Option<u8>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Answers at once with the task's id for wait, status and results.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_submitted"),
    network: true,
    toolset: Toolset::Local,
    failures: AGENT_FAILURES,
    check: check_agent_inputs,
    ..CommandSpec::declare::<Exec>(&["local", "exec"], "Delegate a coding task to run in the background")
};
