//! `logs`: what a task's agent printed, as it was stored.

use delegator_registry::TaskFile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::inputs::OneTask;
use super::local::tasks::{engine, resolved};
use crate::fault::{AppError, ErrorCode};
use crate::outcome::Answer;
use crate::registry::{CommandSpec, Danger, Example, OutputSchema, Shape, typed};
use crate::run::Context;
use crate::views::document::{Block, Document, scalar};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Logs {
    #[serde(flatten)]
    pub task: OneTask,
    /// Go on until the task ends
    #[serde(default)]
    #[schemars(extend("x-unbuilt" = true))]
    pub follow: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct LogsOutput {
    pub task_id: String,
    pub state: String,
    pub stdout: String,
    pub stderr: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Standard output (the events) and standard error, redacted, also while the task runs.",
    shape: Shape::Show("logs"),
    danger: Danger::Safe,
    idempotent: true,
    failures: &[ErrorCode::TaskNotFound, ErrorCode::InvalidId],
    examples: &[Example { command: "mcp-delegator logs T-local-…", shows: "what the agent printed" }],
    output: OutputSchema::Type(crate::registry::input_schema::schema_of::<LogsOutput>),
    describe,
    run: Some(|context, input| typed(context, input, run)),
    ..CommandSpec::declare::<Logs>(&["logs"], "Show what a task's agent printed")
};

fn run(context: &Context<'_>, input: Logs) -> Result<Answer, AppError> {
    let engine = engine(context)?;
    let task = engine.task(&resolved(&engine, &input.task.task_id)?)?;
    let text =
        |which| engine.stored(&task.id, which).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Answer::done(json!(LogsOutput {
        task_id: task.id.to_string(),
        state: task.state.shown().to_owned(),
        stdout: text(TaskFile::Events)?,
        stderr: text(TaskFile::Stderr)?,
    })))
}

fn describe(data: &Value) -> Document {
    let mut document = Document::default().block(Block::Verbatim(scalar(&data["stdout"])));
    if data["stderr"].as_str().is_some_and(|text| !text.is_empty()) {
        document =
            document.block(Block::Text("stderr:".to_owned())).block(Block::Verbatim(scalar(&data["stderr"])));
    }
    document
}
