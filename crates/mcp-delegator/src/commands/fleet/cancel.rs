//! `fleet cancel`: cancel a task of any machine.

use delegator_domain::task::TaskIdPrefix;

use crate::commands::fleet::database::{DatabaseInput, database_from};
use crate::commands::prelude::*;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct FleetCancel {
    /// Id of the task: the fleet's, or the one on the machine that submitted it
    #[schemars(length(min = 1, max = 128), extend("x-markers" = [Marker::Positional]))]
    pub id: String,
    /// Reason, stored with the task
    #[schemars(length(min = 1, max = 1000))]
    pub reason: Option<String>,
    #[serde(flatten)]
    pub database: DatabaseInput,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CancelledFleetTask {
    /// The id on the machine that submitted the task, if that is known.
    pub task_id: Option<String>,
    /// The fleet's own id.
    pub remote_id: String,
    /// The state now; running until the worker has stopped the task.
    pub state: String,
    /// Who runs it, or ran it last.
    pub worker: Option<String>,
    /// Whether this call changed it; false if the task had ended or was being cancelled already.
    pub is_changed: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "A queued task is cancelled at once; the worker of a running one stops it and reports what it did so far.",
    shape: Shape::Action("fleet_cancel_requested"),
    danger: Danger::Destructive,
    idempotent: true,
    network: true,
    toolset: Toolset::Hidden,
    examples: &[example(
        "mcp-delegator fleet cancel T-cloud-7q3k9x2m4p --reason 'it ran before the restore'",
        "the state of the task now",
    )],
    ..CommandSpec::new::<FleetCancel, CancelledFleetTask>(
        &["fleet", "cancel"],
        "Cancel a task of the fleet, from any machine",
    )
};

pub fn run(context: &Context<'_>, input: FleetCancel) -> Result<CommandOutput, AppError> {
    let database = database_from(context, &input.database)?;
    // The id of another machine, in any case; else the fleet's own.
    let typed = input.id.parse::<TaskIdPrefix>().ok().and_then(|typed| typed.complete());
    let id = typed.map_or(input.id, |id| id.to_string());
    let cancelled = database.cancel_by_any_id(&id, input.reason.as_deref())?;
    Ok(CommandOutput::done(CancelledFleetTask {
        task_id: cancelled.submitter_task,
        remote_id: cancelled.id,
        state: cancelled.state,
        worker: cancelled.worker,
        is_changed: cancelled.is_changed,
    }))
}

impl CommandData for CancelledFleetTask {
    fn document(&self) -> Document {
        let (id, state) = (self.task_id.as_ref().unwrap_or(&self.remote_id), &self.state);
        if state == "running" {
            let already = if self.is_changed { "" } else { "already " };
            return Document::titled(format!("{id} is {already}being cancelled"))
                .text(format!("Its worker {} stops it.", cell(self.worker.as_ref())))
                .block(Block::Next(NextCall::new(&["fleet", "tasks"])));
        }
        if self.is_changed {
            Document::titled(format!("{id} is cancelled"))
        } else {
            Document::titled(format!("{id} had ended already: {state}"))
        }
    }
}
