//! `fleet pause`: the fleet, or one worker, claims no more tasks.

use crate::commands::context::Context;
use crate::commands::fleet::database::database_from;
use crate::commands::fleet::{FleetOrWorker, claiming_output, claiming_spec};
use crate::commands::{Command, prepare};
use crate::error::AppError;
use crate::output::outcome::CommandOutput;
use crate::spec::{CommandSpec, Example};

pub const SPEC: CommandSpec = CommandSpec {
    details: "Running tasks continue, and new tasks are still accepted.",
    examples: &[
        Example { command: "mcp-delegator fleet pause", shows: "no worker claims a task" },
        Example { command: "mcp-delegator fleet pause build-3", shows: "one worker claims no task" },
    ],
    ..claiming_spec(
        &["fleet", "pause"],
        "Pause the fleet or a worker: it claims no more tasks",
        "fleet_paused",
    )
};

pub const COMMAND: Command = Command::new(&SPEC, |input| prepare(input, run));

fn run(context: &Context<'_>, input: FleetOrWorker) -> Result<CommandOutput, AppError> {
    let is_changed = database_from(context, &input.database)?.pause(input.worker.as_deref())?;
    Ok(claiming_output(input.worker, true, is_changed))
}
