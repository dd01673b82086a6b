//! `queue pause` and `queue resume`.
//!
//! A pause is stored in the registry, so it affects all processes that use the state directory. It never stops a running
//! task.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::commands::context::Context;
use crate::commands::local::tasks::engine;
use crate::commands::{Command, prepare};
use crate::error::AppError;
use crate::error::suggestion::{NextCall, Suggestion};
use crate::output::documents::document::{Block, Document};
use crate::output::outcome::CommandOutput;
use crate::spec::{CommandSpec, NoInputs, Shape};

#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueState {
    pub is_paused: bool,
    /// Whether this call paused or resumed it.
    pub is_changed: bool,
    pub running_count: u64,
    pub queued_count: u64,
}

pub const PAUSE: CommandSpec = CommandSpec {
    details: "Running tasks continue, and new tasks are still accepted. This affects every user of the state directory.",
    shape: Shape::Action("queue_paused"),
    idempotent: true,
    ..CommandSpec::new::<NoInputs, QueueState>(
        &["queue", "pause"],
        "Pause the queue: start no queued task until it is resumed",
    )
};

pub const PAUSE_COMMAND: Command =
    Command { describe, prepare: Some(|input| prepare(input, pause)), ..Command::new(&PAUSE) };

pub const RESUME: CommandSpec = CommandSpec {
    shape: Shape::Action("queue_resumed"),
    idempotent: true,
    ..CommandSpec::new::<NoInputs, QueueState>(
        &["queue", "resume"],
        "Resume the queue: start queued tasks again",
    )
};

pub const RESUME_COMMAND: Command =
    Command { describe, prepare: Some(|input| prepare(input, resume)), ..Command::new(&RESUME) };

fn pause(context: &Context<'_>, _: NoInputs) -> Result<CommandOutput, AppError> {
    set_paused(context, true)
}

fn resume(context: &Context<'_>, _: NoInputs) -> Result<CommandOutput, AppError> {
    set_paused(context, false)
}

fn set_paused(context: &Context<'_>, paused: bool) -> Result<CommandOutput, AppError> {
    let queue = engine(context)?.set_queue_paused(paused)?;
    Ok(CommandOutput::done(QueueState {
        is_paused: paused,
        is_changed: queue.was_paused != paused,
        running_count: queue.running,
        queued_count: queue.queued,
    }))
}

fn describe(data: &Value) -> Document {
    let already = if data["is_changed"] == false { "already " } else { "" };
    let state = if data["is_paused"] == true { "paused" } else { "open" };
    let counts = format!("{} running, {} queued", data["running_count"], data["queued_count"]);
    let document = Document::titled(format!("The queue is {already}{state}: {counts}"));
    match data["is_paused"] == true {
        true => document.block(Block::ForPeople(Suggestion::with_call(
            "To start queued tasks again: {call}",
            NextCall::new(&["queue", "resume"]),
        ))),
        false => document,
    }
}
