//! `local cancel`: cancel a task and kill all of its processes.
//!
//! The engine requests the cancellation and waits until the task has ended. Processes that survive are
//! reported in `survivors` with a warning; a task that has not ended in time is an error.

use delegator_engine::Target;

use crate::commands::cancel::{
    CancelledTasks, NOTHING_TO_CANCEL, TASKS_CANCELLED, cancel_rest, still_ending, survivors,
    survivors_warning,
};
use crate::commands::local::attach::max_cancel_time;
use crate::commands::prelude::*;
use crate::output::data::registry::{CancelledTask, Swept};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Cancel {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Reason
    #[schemars(length(min = 1, max = 1000), extend("x-markers" = [Marker::ShowsLength, Marker::SelfExplanatory]))]
    pub reason: Option<String>,
    /// Without an id: cancel the last submission of this directory without a question
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Consent]))]
    pub confirm: bool,
}

/// The data of `cancel`: a task; or the attempts of a group, or the tasks that follow an ended one.
#[derive(Debug, JsonSchema)]
pub struct CancelData {
    #[serde(flatten)]
    pub task: Option<CancelledTask>,
    #[serde(flatten)]
    pub group: Option<CancelledTasks>,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Action("task_cancelled"),
    other_actions: &[TASKS_CANCELLED, NOTHING_TO_CANCEL],
    danger: Danger::Destructive,
    idempotent: true,
    config: ConfigUse::ValidPart,
    toolset: Toolset::Local,
    failures: &[ErrorCode::WrongState, ErrorCode::TimeoutWall, ErrorCode::Unsupported],
    ..CommandSpec::new::<Cancel, CancelData>(&["local", "cancel"], "Cancel a task and kill all its processes")
};

pub fn run(context: &Context<'_>, input: Cancel) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let id = match engine.results().resolve_target(input.task.task_id.as_str())? {
        Target::Task(id) => id,
        Target::Group(_) => {
            return cancel_rest(context, &engine, &input.task.task_id, input.reason.as_deref());
        }
    };
    let timeout = max_cancel_time(context);
    let followers = engine.results().unfinished_followers(&id)?;
    let cancelled = match engine.cancellations().cancel(&id, input.reason.as_deref(), timeout) {
        Err(EngineError::AlreadyEnded { .. }) if !engine.results().unfinished_followers(&id)?.is_empty() => {
            return cancel_rest(context, &engine, &input.task.task_id, input.reason.as_deref());
        }
        cancelled => cancelled?,
    };
    let survivors = survivors(&cancelled);
    let record = engine.results().files(&id)?.record;
    let swept = record.as_ref().map(|record| record.swept).filter(|swept| swept.processes > 0);
    let data = CancelledTask {
        operation: "cancel",
        task_id: id.to_string(),
        state: cancelled.task.state.public_name(),
        previous_state: cancelled.previous.public_name(),
        survivors: survivors.to_vec(),
        cancelled_followers: followers.iter().map(|task| task.id.to_string()).collect(),
        signals: record.map(|record| record.signals),
        swept: swept
            .map(|swept| Swept { process_count: swept.processes, has_killed_processes: swept.killed }),
    };
    let error = cancelled.still_ending.then(|| still_ending(&cancelled.task, timeout));
    let acknowledged =
        cancelled.task.cancel.as_ref().map_or(cancelled.task.updated_at_ms, |request| request.at_ms);
    // The caller knows about a task it cancelled.
    let not_marked = if cancelled.still_ending { None } else { mark_read(&engine, &id) };
    Ok(CommandOutput::of(data, error)
        .fact("ack_ts", json!(UtcTime::from_ms(acknowledged)))
        .warn(survivors_warning(id.as_str(), survivors))
        .warn(not_marked)
        .message(format!("Task {id} is {}", cancelled.task.state.public_name())))
}

impl CommandData for CancelledTask {
    fn document(&self) -> Document {
        let swept = self.swept.as_ref().map(|swept| {
            let note = if swept.has_killed_processes { ", some of them with SIGKILL" } else { "" };
            format!("{}{note}", swept.process_count)
        });
        let survivors: Vec<String> = self.survivors.iter().map(ToString::to_string).collect();
        let listed = |items: &[String]| Some(items.join(", ")).filter(|text| !text.is_empty());
        Document::titled(format!("Task {} {}", self.task_id, self.state)).block(Block::facts([
            ("previous state", Some(self.previous_state.to_owned())),
            ("signals sent", self.signals.as_deref().and_then(listed)),
            ("other processes killed", swept),
            ("still alive", listed(&survivors)),
            ("cancelled with it", listed(&self.cancelled_followers)),
        ]))
    }
}
