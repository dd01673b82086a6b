//! Tasks in a cloud environment. Wait, results and cancel are the local commands: they take the id of any
//! task.

pub mod apply;
pub mod environment_template;
pub mod github_setup;
pub mod status;
pub mod submit;

use schemars::Schema;

use delegator_engine::DiffOmissions;

use crate::commands::prelude::*;
use crate::commands::{env, local};
use crate::output::data::diff::too_large_message;
use crate::spec::input_schema::schema_of;

/// Which of the solutions of a task to take.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct AttemptInput {
    /// Attempt, if there are several (default: the first of a cloud task, the recommended one of a group)
    #[schemars(range(min = 1, max = 4))]
    pub attempt: Option<u8>,
}

impl AttemptInput {
    pub fn number(&self) -> u8 {
        self.attempt.unwrap_or(1)
    }
}

/// The diff of an ended task, and what it does not have. An error if there are changes, but no diff.
pub fn stored_diff(engine: &Engine, task: &Task, attempt: u8) -> Result<(Vec<u8>, DiffOmissions), AppError> {
    let omissions = engine.changes().omissions(&task.id)?;
    if let Some(limit) = omissions.size_limit {
        let message = format!("The changes of {} cannot be shown: {}.", task.id, too_large_message(limit));
        return Err(AppError::new(ErrorCode::Unsupported, message)
            .context("task_id", task.id.as_str())
            .suggest(
                "With 'push' in the environment, the worker pushes the changes to a branch; results name it.",
            ));
    }
    Ok((engine.changes().remote_diff(task, attempt)?, omissions))
}

/// The inputs of `local wait` without `chain`: no task follows a cloud task.
fn wait_inputs() -> Schema {
    let mut schema = schema_of::<local::wait::Wait>();
    if let Some(Value::Object(inputs)) = schema.get_mut("properties") {
        inputs.shift_remove("chain");
    }
    schema
}

pub const LIST_ENVIRONMENTS: CommandSpec = CommandSpec {
    path: &["cloud", "list-environments"],
    about: "List the environments for cloud tasks",
    details: "",
    toolset: Toolset::Cloud,
    ..env::check::SPEC
};

const fn for_cloud(local: CommandSpec, path: &'static [&'static str], about: &'static str) -> CommandSpec {
    CommandSpec { path, about, network: true, toolset: Toolset::Cloud, ..local }
}

pub const WAIT: CommandSpec = CommandSpec {
    input: InputType { schema: wait_inputs, ..local::wait::SPEC.input },
    ..for_cloud(local::wait::SPEC, &["cloud", "wait"], "Wait until a cloud task ends")
};

pub const RESULTS: CommandSpec =
    for_cloud(local::results::SPEC, &["cloud", "results"], "Show the result of a finished cloud task");

pub const CANCEL: CommandSpec = for_cloud(local::cancel::SPEC, &["cloud", "cancel"], "Cancel a cloud task");
