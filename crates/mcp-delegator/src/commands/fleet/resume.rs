//! `fleet resume`: the fleet, or one worker, claims tasks again.

use crate::commands::context::Context;
use crate::commands::fleet::database::database_from;
use crate::commands::fleet::{FleetOrWorker, claiming_output, claiming_spec};
use crate::commands::{Command, prepare};
use crate::error::AppError;
use crate::output::outcome::CommandOutput;
use crate::spec::CommandSpec;

pub const SPEC: CommandSpec = CommandSpec {
    details: "A worker that was paused by its name stays paused until it is resumed by its name.",
    ..claiming_spec(
        &["fleet", "resume"],
        "Resume the fleet or a worker: it claims tasks again",
        "fleet_resumed",
    )
};

pub const COMMAND: Command = Command::new(&SPEC, |input| prepare(input, run));

fn run(context: &Context<'_>, input: FleetOrWorker) -> Result<CommandOutput, AppError> {
    let is_changed = database_from(context, &input.database)?.resume(input.worker.as_deref())?;
    Ok(claiming_output(input.worker, false, is_changed))
}
