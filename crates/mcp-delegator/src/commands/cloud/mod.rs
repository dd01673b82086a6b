//! Tasks in a cloud environment. Status, wait, results and cancel have the inputs of the local commands.

pub mod apply;
pub mod environment_template;
pub mod github_setup;
pub mod list_environments;
pub mod status;
pub mod submit;

use crate::commands::local;
use crate::spec::{Category, CommandSpec, Danger, Shape, Toolset};

pub const WAIT: CommandSpec = CommandSpec {
    details: local::wait::SPEC.details,
    category: Category::WaitResult,
    shape: Shape::Show("task"),
    danger: Danger::Safe,
    idempotent: true,
    network: true,
    open_ended: true,
    toolset: Toolset::Cloud,
    exactly_one_of: local::wait::SPEC.exactly_one_of,
    output: local::wait::SPEC.output,
    ..CommandSpec::declare::<local::wait::Wait>(&["cloud", "wait"], "Wait until a cloud task ends")
};

pub const RESULTS: CommandSpec = CommandSpec {
    details: local::results::SPEC.details,
    category: Category::ResultSet,
    shape: Shape::Show("task"),
    danger: Danger::Safe,
    idempotent: true,
    network: true,
    toolset: Toolset::Cloud,
    output: local::results::SPEC.output,
    ..CommandSpec::declare::<local::results::Results>(
        &["cloud", "results"],
        "Show the result of a finished cloud task",
    )
};

pub const CANCEL: CommandSpec = CommandSpec {
    shape: Shape::Action("task_cancelled"),
    danger: Danger::Destructive,
    idempotent: true,
    network: true,
    toolset: Toolset::Cloud,
    output: local::cancel::SPEC.output,
    ..CommandSpec::declare::<local::cancel::Cancel>(&["cloud", "cancel"], "Cancel a cloud task")
};
