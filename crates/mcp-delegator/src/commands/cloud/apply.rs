//! `cloud apply`: apply a cloud task's diff to the local work tree.

use crate::commands::inputs::TaskIdInput;
use crate::spec::{CommandSpec, Shape};

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Action("diff_applied"),
    network: true,
    ..CommandSpec::declare::<TaskIdInput>(
        &["cloud", "apply"],
        "Apply a cloud task's diff to the local work tree",
    )
};
