//! `cloud list-environments`: where cloud tasks can run.

use crate::commands::inputs::NoInputs;
use crate::fault::ErrorCode;
use crate::registry::{CommandSpec, Danger, Shape, Toolset};

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::List("environments"),
    danger: Danger::Safe,
    idempotent: true,
    toolset: Toolset::Cloud,
    failures: &[ErrorCode::NotFound],
    ..CommandSpec::declare::<NoInputs>(
        &["cloud", "list-environments"],
        "List the environments cloud tasks can run in",
    )
};
