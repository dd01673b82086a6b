//! `cloud list-environments`: list the environments for cloud tasks.

use delegator_config::environments;

use crate::commands::context::{Context, sources};
use crate::commands::env::{ListInputs, list_output};
use crate::commands::{Command, prepare};
use crate::error::{AppError, ErrorCode};
use crate::output::data::registry::EnvironmentList;
use crate::output::outcome::CommandOutput;
use crate::spec::{CommandSpec, Danger, Shape, Toolset};

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::List("environments"),
    danger: Danger::Safe,
    idempotent: true,
    toolset: Toolset::Cloud,
    failures: &[ErrorCode::NotFound, ErrorCode::InvalidCursor],
    ..CommandSpec::new::<ListInputs, EnvironmentList>(
        &["cloud", "list-environments"],
        "List the environments for cloud tasks",
    )
};

pub const COMMAND: Command = Command::new(&SPEC, |input| prepare(input, run));

fn run(context: &Context<'_>, inputs: ListInputs) -> Result<CommandOutput, AppError> {
    list_output(&environments::read(&sources(context.process))?, inputs)
}
