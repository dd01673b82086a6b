//! `send`: queue a message for the agent of a running task.
//!
//! The message is stored durably before the command returns. The supervisor of the task delivers it when the agent can
//! take it; the status and the results of the task say what became of it.

use delegator_domain::message::Delivery;
use delegator_engine::{Capabilities, MAX_MESSAGE_BYTES, SentMessage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::context::Context;
use crate::commands::inputs::TaskIdInput;
use crate::commands::local::tasks::{engine, resolve_task};
use crate::commands::{Command, prepare};
use crate::error::suggestion::NextCall;
use crate::error::{AppError, ErrorCode, Problem};
use crate::input::agent_selection::select_agent;
use crate::output::data::conversation::MessageData;
use crate::output::documents::document::{Block, Document, facts, scalar};
use crate::output::outcome::CommandOutput;
use crate::spec::{CommandSpec, Example, Shape};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Send {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Message text
    #[schemars(
        length(min = 1, max = MAX_MESSAGE_BYTES),
        extend("x-positional" = true, "x-stdin" = true, "x-stdin-flag" = true)
    )]
    pub text: String,
    /// Deliver it into the running turn; not every agent can do that
    #[serde(default)]
    pub now: bool,
    /// Deliver it as the next turn, when the running one has ended; the default
    #[serde(default)]
    pub next: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SentData {
    pub task_id: String,
    /// The state of the task.
    pub state: &'static str,
    pub message: MessageData,
    /// Messages to the task that are not delivered yet, this one included.
    pub queued_count: u64,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "The message is stored and delivered in order; status and results show what became of it. A task that has not started yet gets it once it runs.",
    shape: Shape::Action("message_queued"),
    failures: &[
        ErrorCode::TaskNotFound,
        ErrorCode::InvalidId,
        ErrorCode::WrongState,
        ErrorCode::NotReady,
        ErrorCode::Unsupported,
    ],
    examples: &[
        Example {
            command: "mcp-delegator send T-local-… 'Also update the changelog.'",
            shows: "the number of the message",
        },
        Example {
            command: "git diff | mcp-delegator send T-local-… --stdin",
            shows: "the same, with a text from another program",
        },
    ],
    check,
    ..CommandSpec::new::<Send, SentData>(&["send"], "Queue a message for a running agent")
};

pub const COMMAND: Command =
    Command { describe, prepare: Some(|input| prepare(input, run)), ..Command::new(&SPEC) };

fn check(input: &Value) -> Vec<Problem> {
    let is_true = |key: &str| input.get(key) == Some(&Value::Bool(true));
    let mut problems = Vec::new();
    if is_true("now") && is_true("next") {
        let message = "cannot be given together with {input:next}";
        problems.push(Problem::new(ErrorCode::InvalidValue, "now", message));
    }
    if input.get("text").and_then(Value::as_str).is_some_and(|text| text.trim().is_empty()) {
        problems.push(Problem::new(ErrorCode::InvalidValue, "text", "must not be blank"));
    }
    problems
}

fn run(context: &Context<'_>, input: Send) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let id = resolve_task(&engine, &input.task.task_id)?;
    let agent = engine.recorded_task(&id)?.agent;
    let configured =
        select_agent(context.config, &agent).map_err(|problem| AppError::from_problems(vec![problem]))?;
    let delivery = if input.now { Delivery::Now } else { Delivery::Next };
    let support = Capabilities::of(configured.kind()).messages;
    let SentMessage { message, state, queued } = engine.send_message(&id, &input.text, delivery, support)?;
    let output = CommandOutput::done(SentData {
        task_id: id.to_string(),
        state: state.public_name(),
        message: (&message).into(),
        queued_count: queued,
    });
    Ok(CommandOutput { message: Some(format!("Message {} to {id} queued", message.number)), ..output })
}

fn describe(data: &Value) -> Document {
    let (number, task) = (scalar(&data["message"]["message_number"]), scalar(&data["task_id"]));
    Document::titled(format!("Message {number} to {task} queued"))
        .block(Block::Facts(facts(
            data,
            &[
                ("task state", "/state"),
                ("delivery", "/message/delivery"),
                ("not delivered yet", "/queued_count"),
            ],
        )))
        .block(Block::Next(NextCall::new(&["local", "status"]).with("task_id", data["task_id"].clone())))
}
