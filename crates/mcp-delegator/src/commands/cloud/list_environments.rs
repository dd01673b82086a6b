//! `cloud list-environments`: where cloud tasks can run.

use delegator_config::environments;

use crate::commands::env::{describe_list, listed};
use crate::commands::inputs::NoInputs;
use crate::fault::{AppError, ErrorCode};
use crate::outcome::Answer;
use crate::registry::{CommandSpec, Danger, Shape, Toolset, typed};
use crate::run::{Context, sources};

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::List("environments"),
    danger: Danger::Safe,
    idempotent: true,
    toolset: Toolset::Cloud,
    failures: &[ErrorCode::NotFound],
    describe: describe_list,
    run: Some(|context, input| typed(context, input, run)),
    ..CommandSpec::declare::<NoInputs>(
        &["cloud", "list-environments"],
        "List the environments for cloud tasks",
    )
};

fn run(context: &Context<'_>, _: NoInputs) -> Result<Answer, AppError> {
    Ok(listed(&environments::read(&sources(context.process))?))
}
