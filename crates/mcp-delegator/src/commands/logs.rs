//! `logs`: the stored output of a task's agent.
//!
//! The stored streams are already redacted. With `--follow` new lines are printed until the task ends.

use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::{Engine, EngineError};
use delegator_registry::TaskFile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::context::Context;
use crate::commands::inputs::TaskIdInput;
use crate::commands::local::tasks::{engine, resolve_task};
use crate::commands::{Command, prepare};
use crate::error::{AppError, ErrorCode};
use crate::output::documents::document::{Block, Document, scalar};
use crate::output::outcome::CommandOutput;
use crate::output::screen::{Flow, ItemFormat};
use crate::spec::{CommandSpec, Danger, Example, Shape};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Logs {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Print new output until the task ends
    #[serde(default)]
    pub follow: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct LogsOutput {
    pub task_id: String,
    pub state: String,
    pub stdout: String,
    pub stderr: String,
    /// Output of the verify command, if one was run
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Standard output (the events), standard error and the output of the verify command, redacted; also while the task runs.",
    open_ended: true,
    shape: Shape::Show("logs"),
    danger: Danger::Safe,
    idempotent: true,
    failures: &[ErrorCode::TaskNotFound],
    examples: &[Example { command: "mcp-delegator logs T-local-…", shows: "the agent's output" }],
    ..CommandSpec::new::<Logs, LogsOutput>(&["logs"], "Show the output of a task's agent")
};

pub const COMMAND: Command =
    Command { describe, prepare: Some(|input| prepare(input, run)), ..Command::new(&SPEC) };

fn run(context: &Context<'_>, input: Logs) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let id = resolve_task(&engine, &input.task.task_id)?;
    if input.follow && context.screen.presentation.items() != ItemFormat::Collected {
        return follow(context, &engine, &id);
    }
    let task = if input.follow { engine.wait(&id, None, |_| {})?.task } else { engine.task(&id)? };
    let text =
        |which| engine.read_stored(&task.id, which).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(CommandOutput::done(LogsOutput {
        task_id: task.id.to_string(),
        state: task.state.public_name().to_owned(),
        stdout: text(TaskFile::Events)?,
        stderr: text(TaskFile::Stderr)?,
        verify: Some(text(TaskFile::Verify)?).filter(|text| !text.is_empty()),
    }))
}

/// Poll interval for new output.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Prints complete lines of all streams as they arrive, until the task has ended.
fn follow(context: &Context<'_>, engine: &Engine, id: &TaskId) -> Result<CommandOutput, AppError> {
    let Some(dir) = engine.task_dir(id)? else {
        return Err(EngineError::UnknownTask { given: id.to_string() }.into());
    };
    let mut streams = [TaskFile::Events, TaskFile::Stderr, TaskFile::Verify].map(|file| (file, 0));
    let mut print_new = |ended: bool| -> Result<(), FollowEnd> {
        for (file, printed_bytes) in &mut streams {
            let (start, mut new) = dir.read_from(*file, *printed_bytes).map_err(EngineError::from)?;
            if !ended {
                new.truncate(new.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
            }
            if context.screen.write_lines(&new)? == Flow::Stop {
                return Err(FollowEnd::ReaderGone);
            }
            *printed_bytes = start + new.len() as u64;
        }
        Ok(())
    };
    // The state is read before the last output, so that everything written before the end is printed.
    let followed = engine.wait_with_interval(id, POLL_INTERVAL, || print_new(false)).and_then(|task| {
        print_new(true)?;
        Ok(task)
    });
    let task = match followed {
        Ok(task) => task,
        Err(FollowEnd::ReaderGone) => engine.task(id)?,
        Err(FollowEnd::Failed(error)) => return Err(*error),
    };
    let state = task.state.public_name().to_owned();
    let (stdout, stderr, verify) = (String::new(), String::new(), None);
    Ok(CommandOutput::done(LogsOutput { task_id: id.to_string(), state, stdout, stderr, verify }))
}

/// Why following ended before the task did.
#[derive(Debug)]
enum FollowEnd {
    /// The reader has closed the pipe.
    ReaderGone,
    Failed(Box<AppError>),
}

impl<T: Into<AppError>> From<T> for FollowEnd {
    fn from(error: T) -> FollowEnd {
        FollowEnd::Failed(Box::new(error.into()))
    }
}

fn describe(data: &Value) -> Document {
    let mut document = Document::default();
    if data["stdout"].as_str().is_some_and(|text| !text.is_empty()) {
        document = document.block(Block::Verbatim(scalar(&data["stdout"])));
    }
    for stream in ["stderr", "verify"] {
        if data[stream].as_str().is_some_and(|text| !text.is_empty()) {
            document = document
                .block(Block::Text(format!("{stream}:")))
                .block(Block::Verbatim(scalar(&data[stream])));
        }
    }
    document
}
