//! `cloud status`: running, queued and recent cloud tasks.

use delegator_domain::task::TaskLocation;

use crate::commands::local::status::{self, Scope, Status, StatusInputs};
use crate::commands::prelude::*;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct CloudStatus {
    #[serde(flatten)]
    pub filter: StatusInputs,
    /// Only this environment
    #[schemars(length(min = 1, max = 128))]
    pub env_id: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    path: &["cloud", "status"],
    about: "Show cloud tasks",
    network: true,
    toolset: Toolset::Cloud,
    input: InputType::of::<CloudStatus>(),
    ..status::SPEC
};

pub fn run(context: &Context<'_>, input: CloudStatus) -> Result<CommandOutput, AppError> {
    let scope = Scope { location: TaskLocation::Cloud, environment: input.env_id };
    status::show(context, &Status { filter: input.filter, usage: false, watch: false }, &scope)
}
