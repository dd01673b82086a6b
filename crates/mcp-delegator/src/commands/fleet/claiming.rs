//! `fleet pause` and `fleet resume`: whether the fleet, or one worker, claims tasks. `fleet drain`: a worker claims no
//! more tasks and ends when its running ones have.

use crate::commands::fleet::database::{DatabaseInput, database_from};
use crate::commands::prelude::*;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct FleetOrWorker {
    /// Only this worker
    #[schemars(length(min = 1, max = 128), extend("x-markers" = [Marker::Positional]))]
    pub worker: Option<String>,
    #[serde(flatten)]
    pub database: DatabaseInput,
}

/// Which workers claim tasks, after a command.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClaimingChange {
    /// The worker; null for the whole fleet.
    pub worker: Option<String>,
    pub is_paused: bool,
    /// Whether this call changed it.
    pub is_changed: bool,
}

pub const PAUSE: CommandSpec = CommandSpec {
    details: "Running tasks continue, and new tasks are still accepted.",
    shape: Shape::Action("fleet_paused"),
    idempotent: true,
    network: true,
    toolset: Toolset::Hidden,
    examples: &[
        example("mcp-delegator fleet pause", "no worker claims a task"),
        example("mcp-delegator fleet pause build-3", "one worker claims no task"),
    ],
    ..CommandSpec::new::<FleetOrWorker, ClaimingChange>(
        &["fleet", "pause"],
        "Pause the fleet or a worker: it claims no more tasks",
    )
};

pub const RESUME: CommandSpec = CommandSpec {
    path: &["fleet", "resume"],
    about: "Resume the fleet or a worker: it claims tasks again",
    details: "A worker that was paused by its name stays paused until it is resumed by its name.",
    shape: Shape::Action("fleet_resumed"),
    examples: &[],
    ..PAUSE
};

pub fn pause(context: &Context<'_>, input: FleetOrWorker) -> Result<CommandOutput, AppError> {
    let is_changed = database_from(context, &input.database)?.pause(input.worker.as_deref())?;
    Ok(CommandOutput::done(ClaimingChange { worker: input.worker, is_paused: true, is_changed }))
}

pub fn resume(context: &Context<'_>, input: FleetOrWorker) -> Result<CommandOutput, AppError> {
    let is_changed = database_from(context, &input.database)?.resume(input.worker.as_deref())?;
    Ok(CommandOutput::done(ClaimingChange { worker: input.worker, is_paused: false, is_changed }))
}

impl CommandData for ClaimingChange {
    fn document(&self) -> Document {
        let subject =
            self.worker.as_ref().map_or("The fleet".to_owned(), |worker| format!("The worker {worker}"));
        let already = if self.is_changed { "" } else { "already " };
        if !self.is_paused {
            return Document::titled(format!("{subject} is {already}open for tasks"));
        }
        Document::titled(format!("{subject} is {already}paused"))
            .text("It claims no more tasks; running tasks continue.")
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Drain {
    /// Name of the worker
    #[schemars(length(min = 1, max = 128), extend("x-markers" = [Marker::Positional]))]
    pub worker: String,
    #[serde(flatten)]
    pub database: DatabaseInput,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DrainedWorker {
    pub worker: String,
    /// Whether this call changed it; false if it was draining already.
    pub is_changed: bool,
}

pub const DRAIN: CommandSpec = CommandSpec {
    details: "The worker process exits when its running tasks have ended. A drain cannot be taken back: start the worker again.",
    shape: Shape::Action("worker_draining"),
    idempotent: true,
    network: true,
    toolset: Toolset::Hidden,
    ..CommandSpec::new::<Drain, DrainedWorker>(&["fleet", "drain"], "Let a worker finish its tasks and exit")
};

pub fn drain(context: &Context<'_>, input: Drain) -> Result<CommandOutput, AppError> {
    let is_changed = database_from(context, &input.database)?.drain(&input.worker)?;
    Ok(CommandOutput::done(DrainedWorker { worker: input.worker, is_changed }))
}

impl CommandData for DrainedWorker {
    fn document(&self) -> Document {
        let already = if self.is_changed { "" } else { "already " };
        let effect = "It claims no more tasks and exits when its running tasks have ended.";
        Document::titled(format!("The worker {} is {already}draining", self.worker)).text(effect)
    }
}
