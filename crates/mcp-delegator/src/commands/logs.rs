//! `logs`: the stored output of a task's agent.
//!
//! The stored streams are already redacted. With `--follow` new lines are printed until the task ends.

use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_engine::Engine;
use delegator_registry::TaskFile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
    failures: &[ErrorCode::TaskNotFound, ErrorCode::InvalidId],
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
    let mut shown_bytes = [0_usize; 3];
    loop {
        // Query the state before reading, so that everything written before the end is printed.
        let task = engine.wait(id, Some(Instant::now() + POLL_INTERVAL), |_| {})?.task;
        let ended = task.state.is_terminal();
        for (which, shown) in
            [TaskFile::Events, TaskFile::Stderr, TaskFile::Verify].into_iter().zip(&mut shown_bytes)
        {
            let stored = engine.read_stored(id, which)?;
            // A stream that was truncated meanwhile is printed again from its beginning.
            let from = if *shown > stored.len() { 0 } else { *shown };
            let whole =
                stored[from..].iter().rposition(|byte| *byte == b'\n').map_or(from, |at| from + at + 1);
            let end = if ended { stored.len() } else { whole };
            if context.screen.write_lines(&stored[from..end])? == Flow::Stop {
                return Ok(CommandOutput::done(json!({})));
            }
            *shown = end;
        }
        if ended {
            let state = task.state.public_name().to_owned();
            let (stdout, stderr, verify) = (String::new(), String::new(), None);
            let task_id = id.to_string();
            return Ok(CommandOutput::done(LogsOutput { task_id, state, stdout, stderr, verify }));
        }
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
