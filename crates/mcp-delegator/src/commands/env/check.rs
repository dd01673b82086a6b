//! `env check`: validate the environments file and report all problems.

use delegator_config::environments;

use crate::commands::env::{ListInputs, list_output};
use crate::commands::prelude::*;
use crate::output::data::registry::EnvironmentList;

pub const SPEC: CommandSpec = CommandSpec {
    details: "Reports every problem with line and column; unknown fields are warnings.",
    shape: Shape::List("environments"),
    failures: &[ErrorCode::NotFound],
    ..CommandSpec::read_only::<ListInputs, EnvironmentList>(&["env", "check"], "Check the environments file")
};

pub fn run(context: &Context<'_>, inputs: ListInputs) -> Result<CommandOutput, AppError> {
    list_output(&environments::read(&sources(context.process))?, inputs)
}
