//! `env check`: whether the environments file can be used, and everything that is wrong with it.

use delegator_config::environments;

use super::{describe_list, listed};
use crate::commands::inputs::NoInputs;
use crate::fault::{AppError, ErrorCode};
use crate::outcome::Answer;
use crate::registry::{CommandSpec, Danger, Shape, typed};
use crate::run::{Context, sources};

pub const SPEC: CommandSpec = CommandSpec {
    details: "Tells every problem with its line and column, and fields nobody knows as warnings.",
    danger: Danger::Safe,
    idempotent: true,
    shape: Shape::List("environments"),
    failures: &[ErrorCode::NotFound],
    describe: describe_list,
    run: Some(|context, input| typed(context, input, run)),
    ..CommandSpec::declare::<NoInputs>(&["env", "check"], "Check the environments file")
};

fn run(context: &Context<'_>, _: NoInputs) -> Result<Answer, AppError> {
    Ok(listed(&environments::read(&sources(context.process))?))
}
