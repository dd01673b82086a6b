//! `cloud status`: running, queued and recent cloud tasks.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::commands::local::status::StatusInputs;
use crate::output::data::status::StatusSnapshot;
use crate::spec::{Category, CommandSpec, Danger, Shape, Toolset, output_schema};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct CloudStatus {
    #[serde(flatten)]
    pub filter: StatusInputs,
    /// Only this environment
    #[schemars(length(min = 1, max = 128))]
    pub env_id: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    category: Category::StatusSnapshot,
    shape: Shape::Show("snapshot"),
    danger: Danger::Safe,
    idempotent: true,
    network: true,
    toolset: Toolset::Cloud,
    output: output_schema::<StatusSnapshot>,
    ..CommandSpec::declare::<CloudStatus>(&["cloud", "status"], "Show cloud tasks")
};
