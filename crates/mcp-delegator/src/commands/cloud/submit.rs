//! `cloud submit`: delegate a task to a cloud environment.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::commands::inputs::{SubmissionInputs, check_task_text};
use crate::output::data::acknowledgement::ExecutionAck;
use crate::spec::{Category, CommandSpec, Shape, Toolset, output_schema};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Submit {
    #[serde(flatten)]
    pub submission: SubmissionInputs,
    /// Environment id or label
    #[schemars(length(min = 1, max = 128))]
    pub env_id: String,
    /// Attempts
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 4))]
    pub attempts: u8,
    /// Branch
    #[schemars(length(min = 1, max = 255))]
    pub branch: Option<String>,
}

fn one() -> u8 {
    1
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Returns its id at once.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_submitted"),
    network: true,
    toolset: Toolset::Cloud,
    check: check_task_text,
    output: output_schema::<ExecutionAck>,
    ..CommandSpec::declare::<Submit>(&["cloud", "submit"], "Delegate a coding task to a cloud environment")
};
