//! `diff`: the changes of a cloud task, as a unified diff.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::commands::cloud::{AttemptInput, stored_diff};
use crate::commands::completions::{RawText, raw_text};
use crate::commands::context::Context;
use crate::commands::inputs::TaskIdInput;
use crate::commands::local::tasks::{ended, engine, resolve_task};
use crate::commands::{Command, prepare};
use crate::error::{AppError, ErrorCode};
use crate::output::data::diff_omissions::omission_warnings;
use crate::output::outcome::CommandOutput;
use crate::spec::{CommandSpec, Danger, Example, RawOutput, Shape};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Diff {
    #[serde(flatten)]
    pub task: TaskIdInput,
    #[serde(flatten)]
    pub attempt: AttemptInput,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Prints nothing if the task changed nothing.",
    shape: Shape::Show("diff"),
    danger: Danger::Safe,
    idempotent: true,
    network: true,
    raw: RawOutput::Always,
    failures: &[ErrorCode::TaskNotFound, ErrorCode::NotReady, ErrorCode::Unsupported],
    examples: &[Example { command: "mcp-delegator diff T-cloud-…", shows: "what the task changed" }],
    ..CommandSpec::new::<Diff, RawText>(&["diff"], "Print the changes of a cloud task as a diff")
};

pub const COMMAND: Command = Command { prepare: Some(|input| prepare(input, run)), ..Command::new(&SPEC) };

fn run(context: &Context<'_>, input: Diff) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let task = engine.task(&resolve_task(&engine, &input.task.task_id)?)?;
    if task.remote.is_none() {
        let message = "The diff of a task of this machine is not stored: it worked in your own directory.";
        return Err(AppError::new(ErrorCode::Unsupported, message)
            .context("task_id", task.id.as_str())
            .suggest(format!("Run 'git diff' in {}.", task.working_dir)));
    }
    let task = ended(task)?;
    let (diff, omissions) = stored_diff(&engine, &task, input.attempt.attempt)?;
    let mut output = raw_text(diff);
    output.warnings.extend(omission_warnings(&omissions));
    Ok(output)
}
