//! `cloud apply`: bring a cloud task's diff into the local tree.

use crate::commands::inputs::OneTask;
use crate::fault::ErrorCode;
use crate::registry::{CommandSpec, Shape};

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Action("diff_applied"),
    network: true,
    failures: &[
        ErrorCode::TaskNotFound,
        ErrorCode::InvalidId,
        ErrorCode::WrongState,
        ErrorCode::VersionConflict,
    ],
    ..CommandSpec::declare::<OneTask>(&["cloud", "apply"], "Apply a cloud task's diff to the local work tree")
};
