//! `local exec`: start a task in the background.
//!
//! The call returns after the submission is durable. It waits briefly for the thread id, and never for the
//! task itself.

use std::time::Instant;

use delegator_engine::SubmitOutcome;

use crate::commands::local::attempts::{AttemptsInputs, group_of, submit_attempts};
use crate::commands::local::preflight::agent_problems;
use crate::commands::prelude::*;
use crate::commands::sign_in::OpenInput;
use crate::output::data::acknowledgement::AckMeta;
use crate::output::data::diff::not_carried_warning;
use crate::output::data::group::GroupData;
use crate::output::data::{chain, stored_task as task_data, warnings};
use crate::output::values::format_estimate;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Exec {
    #[serde(flatten)]
    pub submission: SubmissionInputs,
    /// Sandbox mode; CLI: without it, default_mode of the configuration
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = Mode::NAMES, "x-markers" = [Marker::SelfExplanatory, Marker::DefaultMode]))]
    pub mode: Mode,
    /// Required for mode danger-full-access
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Consent]))]
    pub confirm: Option<bool>,
    #[serde(flatten)]
    pub agent: AgentInputs,
    #[serde(flatten)]
    pub attempts: AttemptsInputs,
    #[serde(flatten)]
    pub open: OpenInput,
}

impl Exec {
    fn task_input(&self) -> TaskInput {
        TaskInput {
            submission: self.submission.clone(),
            mode: RunMode::Sandbox(self.mode),
            agent: self.agent.clone(),
            ..TaskInput::default()
        }
    }
}

impl InputRules for Exec {
    fn problems(&self) -> Vec<Problem> {
        [self.task_input().problems(), self.attempts.problems(&self.agent)].concat()
    }

    fn confirmation(&self, surface: Surface) -> Option<Problem> {
        self.task_input().command_line_confirmation(self.confirm, surface)
    }

    fn preflight(&self, context: &PreflightContext<'_>) -> Vec<Problem> {
        let problems = agent_problems(&self.task_input(), &self.attempts, context);
        problems.into_iter().chain(self.open.preflight(context)).collect()
    }
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Returns its id; wait returns the result. Mode workspace-write needs no confirmation: naming it is the consent.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_submitted"),
    network: true,
    toolset: Toolset::Local,
    input: InputType::with_rules::<Exec>(),
    examples: &[
        example(
            "mcp-delegator exec 'fix the failing test' --mode workspace-write",
            "the task id; the task runs in the background",
        ),
        example(
            "mcp-delegator exec 'fix the failing test' --mode workspace-write --attempts 3 --verify 'make test'",
            "the id of a group of three attempts; results compares them",
        ),
    ],
    ..CommandSpec::new::<Exec, ExecutionAck>(&["local", "exec"], "Start a coding task in the background")
};

const THREAD_WAIT: Duration = Duration::from_millis(1500);

pub fn run(context: &Context<'_>, input: Exec) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let request = TaskRequest::new(input.task_input());
    let submitted = submit_attempts(context, &engine, &request, &input.attempts)?;
    input.open.open(context, &submitted.task)?;
    accepted_output(&engine, submitted)
}

/// The output for an accepted task, with its thread id if the agent announces it in time.
pub fn accepted_output(engine: &Engine, submitted: SubmitOutcome) -> Result<CommandOutput, AppError> {
    let deadline = Instant::now() + THREAD_WAIT;
    let id = submitted.task.id.clone();
    let task = match submitted.queue_position {
        0 if submitted.has_thread => engine.waits().for_thread(&id, deadline)?,
        _ => submitted.task.clone(),
    };
    // A task that has ended (found by its idempotency key) is not in the queue.
    let has_ended = task.ended.is_some();
    let acknowledgement = ExecutionAck {
        expected_duration: submitted.expected.map(format_estimate),
        summary: has_ended.then(|| task_data::summary(&task)),
        worktree: submitted.worktree.as_ref().map(|path| path.display().to_string()),
        followers: chain::followers(&submitted.followers),
        group: group_of(&task).map(|group| GroupData::of_tasks(group, &submitted.attempts)),
        ..ExecutionAck::of(&task, Capability::Background)
    };
    let message = match group_of(&task) {
        Some(group) => format!("Group {group} of {} attempts accepted", submitted.attempts.len()),
        None => format!("Task {id} accepted"),
    };
    let output = CommandOutput::done(acknowledgement).with_facts(AckMeta {
        queue_position: (!has_ended).then_some(submitted.queue_position),
        estimated_start_ms: submitted.estimated_start_ms,
        replayed: submitted.replayed,
        waiting_for: submitted.waiting_for.as_ref().map(Into::into),
        is_queue_paused: submitted.queue_paused,
        agent_pause: submitted.agent_pause.as_ref().map(Into::into),
    });
    Ok(output
        .warn(submitted.agent_pause.iter().map(warnings::agent_paused))
        .warn(submitted.queue_paused.then(warnings::queue_paused))
        .warn(not_carried_warning(&submitted.not_carried))
        .message(message))
}
