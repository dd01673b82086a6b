//! `fleet drain`: a worker claims no more tasks and ends when its running ones have.

use crate::commands::fleet::database::{DatabaseInput, database_from};
use crate::commands::prelude::*;

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

pub const SPEC: CommandSpec = CommandSpec {
    details: "The worker process exits when its running tasks have ended. A drain cannot be taken back: start the worker again.",
    shape: Shape::Action("worker_draining"),
    idempotent: true,
    network: true,
    toolset: Toolset::Hidden,
    ..CommandSpec::new::<Drain, DrainedWorker>(&["fleet", "drain"], "Let a worker finish its tasks and exit")
};

pub fn run(context: &Context<'_>, input: Drain) -> Result<CommandOutput, AppError> {
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
