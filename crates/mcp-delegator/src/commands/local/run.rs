//! `local run`: run a task and wait for it.
//!
//! The command submits the task, waits at most `call_budget_sec`, and returns the result or the state so far.
//! The end of the call never ends the task. Over MCP, modes that write require `confirm`.

use delegator_config::built_in_default;
use delegator_domain::task::{FailureKind, GroupId, LimitKind, TaskEnd};
use delegator_domain::text;
use delegator_engine::wait_thread::{GroupWaitOutcome, WaitGoal};
use delegator_engine::{SubmitOutcome, WaitOutcome, has_acted};
use jiff::Timestamp;

use crate::commands::inputs;
use crate::commands::local::attempts::{AttemptsInputs, compare, group_of, submit_attempts};
use crate::commands::local::exec::accepted_output;
use crate::commands::local::preflight::agent_problems;
use crate::commands::local::tasks::{first_ended, refresh, report_obstacles};
use crate::commands::prelude::*;
use crate::commands::sign_in::OpenInput;
use crate::commands::{AfterWait, Origin, Started, TaskWait};
use crate::output::command_data::Data;
use crate::output::data::failure::{FailureContext, PartialResults, TimedOutRun, TimeoutContext, describe};
use crate::output::data::group::GroupData;
use crate::output::data::progress::Progress;
use crate::output::data::suggestions::sign_in;
use crate::output::data::task::TaskReport;
use crate::output::data::{chain, error_context, stored_task as task_data, verification, warnings};
use crate::output::outcome::{IncompleteReason, WaitHint};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Run {
    #[serde(flatten)]
    pub submission: SubmissionInputs,
    /// Sandbox mode; CLI: without it, default_mode of the configuration
    #[serde(default)]
    #[schemars(schema_with = "inputs::run_modes", extend("x-markers" = [Marker::SelfExplanatory, Marker::DefaultMode]))]
    pub mode: RunMode,
    /// The user agreed to writing; CLI: on the command line, needed only for danger-full-access
    #[serde(default)]
    #[schemars(extend("default" = false))]
    pub confirm: Option<bool>,
    /// Return at once
    #[serde(default, rename = "async")]
    pub is_async: bool,
    #[serde(flatten)]
    pub detach: DetachInput,
    #[serde(flatten)]
    pub agent: AgentInputs,
    #[serde(flatten)]
    pub attempts: AttemptsInputs,
    #[serde(flatten)]
    pub open: OpenInput,
    /// Return after this many seconds, even if the task is still running; CLI: on the command line, no limit unless given
    #[schemars(range(min = 1, max = 86_400), extend("x-markers" = [Marker::Advanced], "default" = built_in_default("call_budget_sec")))]
    pub call_budget_sec: Option<u32>,
}

impl Run {
    fn task_input(&self) -> TaskInput {
        TaskInput {
            submission: self.submission.clone(),
            mode: self.mode,
            agent: self.agent.clone(),
            is_async: Some(self.is_async),
            call_budget_sec: self.call_budget_sec.map(u64::from),
            ..TaskInput::default()
        }
    }
}

impl InputRules for Run {
    fn problems(&self) -> Vec<Problem> {
        [self.task_input().problems(), self.attempts.problems(&self.agent)].concat()
    }

    fn confirmation(&self, surface: Surface) -> Option<Problem> {
        let input = self.task_input();
        match surface {
            Surface::CommandLine => input.command_line_confirmation(self.confirm, surface),
            Surface::Server => (input.writes() && self.confirm != Some(true)).then(|| {
                let message = "must be true for a mode that writes";
                Problem::new(ErrorCode::ConfirmationRequired, "confirm", message)
                    .suggest(Some("Ask the user. If the user agrees, set confirm to true."))
            }),
        }
    }

    fn preflight(&self, context: &PreflightContext<'_>) -> Vec<Problem> {
        let problems = agent_problems(&self.task_input(), &self.attempts, context);
        problems.into_iter().chain(self.open.preflight(context)).collect()
    }
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Returns its result, or its id after call_budget_sec; it continues.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_run"),
    network: true,
    open_ended: true,
    toolset: Toolset::Local,
    input: InputType::with_rules::<Run>(),
    examples: &[example(
        "mcp-delegator run 'explain the build'",
        "the agent's final message, with progress while it runs",
    )],
    ..CommandSpec::new::<Run, ExecutionAck>(&["local", "run"], "Run a coding task and wait for it")
};

pub fn run(context: &Context<'_>, input: Run) -> Result<Started, AppError> {
    let engine = engine(context)?;
    let budget = input.call_budget_sec.map(|seconds| Duration::from_secs(seconds.into()));
    let timeout = budget.or(context.call_budget);
    let request = TaskRequest { call_budget: timeout, ..TaskRequest::new(input.task_input()) };
    let submitted = submit_attempts(context, &engine, &request, &input.attempts)?;
    input.open.open(context, &submitted.task)?;
    if input.is_async || input.detach.detach {
        return Ok(accepted_output(&engine, submitted)?.into());
    }
    Ok(wait_for(submitted, timeout, None))
}

/// Waits for the tasks of a submission.
fn wait_for(submitted: SubmitOutcome, timeout: Option<Duration>, origin: Option<Origin>) -> Started {
    let id = submitted.task.id;
    let ids = match submitted.attempts.as_slice() {
        [] => vec![id.clone()],
        attempts => attempts.iter().map(|task| task.id.clone()).collect(),
    };
    let wait = TaskWait { ids, goal: WaitGoal::All, timeout };
    Started::Waiting(wait, AfterWait::Run { id, replayed: submitted.replayed, origin })
}

/// Waits for an accepted task if a person reads the output and did not choose otherwise; else acknowledges
/// it.
pub fn attend(
    context: &Context<'_>,
    engine: &Engine,
    submitted: SubmitOutcome,
    DetachInput { detach }: DetachInput,
    origin: Option<Origin>,
) -> Result<Started, AppError> {
    let is_read = !context.screen.presentation.is_for_programs() && !context.process.is_unattended();
    if context.surface == Surface::CommandLine && is_read && !detach {
        return Ok(wait_for(submitted, None, origin));
    }
    Ok(accepted_output(engine, submitted)?.origin(origin.as_ref()).into())
}

pub fn after_wait(
    context: &Context<'_>,
    watched: GroupWaitOutcome,
    replayed: bool,
) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let watched = refresh(&engine, watched)?;
    let group = watched.tasks.first().and_then(group_of).cloned();
    let output = match group {
        Some(group) => group_output(context, &engine, &group)?,
        None => foreground_output(context, &engine, first_ended(&watched)?, Data::from)?,
    };
    Ok(if replayed { output.fact("replayed", true) } else { output })
}

/// The output of a group that was waited for: that of the recommended attempt, else of the first, and the
/// comparison.
fn group_output(context: &Context<'_>, engine: &Engine, group: &GroupId) -> Result<CommandOutput, AppError> {
    let tasks = engine.results().group(group)?;
    if let Some(task) = tasks.iter().find(|task| !task.state.is_terminal()).cloned() {
        let data = GroupData::of_tasks(group, &tasks);
        let waited = WaitOutcome { task, expired: true };
        return foreground_output(context, engine, waited, with_group(data));
    }
    let compared = compare(context, engine, group)?;
    let data = GroupData::of_compared(group, &compared);
    let number = compared.recommendation.attempt;
    let mut attempts = compared.attempts.into_iter();
    let first = attempts.next().ok_or_else(|| EngineError::UnknownGroup { given: group.to_string() })?;
    let mut warnings = Vec::new();
    let mut chosen = first;
    for attempt in attempts {
        let (taken, other) =
            if Some(attempt.number) == number { (attempt, chosen) } else { (chosen, attempt) };
        warnings.extend(mark_read(engine, &other.task.id));
        chosen = taken;
    }
    let waited = WaitOutcome { task: chosen.task, expired: false };
    Ok(foreground_output(context, engine, waited, with_group(data))?.warn(warnings))
}

fn with_group(group: GroupData) -> impl FnOnce(ExecutionAck) -> Data {
    |attempt| ExecutionAck { group: Some(group), ..attempt }.into()
}

/// The output of a run that was waited for. `make_data` makes the data of the command.
pub fn foreground_output(
    context: &Context<'_>,
    engine: &Engine,
    waited: WaitOutcome,
    make_data: impl FnOnce(ExecutionAck) -> Data,
) -> Result<CommandOutput, AppError> {
    let WaitOutcome { task, expired } = waited;
    let files = engine.results().files(&task.id)?;
    let followers = chain::followers(&files.followers);
    let acknowledgement = ExecutionAck { followers, ..ExecutionAck::of(&task, Capability::Foreground) };
    if expired {
        let progress = Some(files.snapshot.as_ref().and_then(Progress::of_snapshot));
        let elapsed_seconds = task_data::elapsed_seconds(&task, Timestamp::now().as_millisecond());
        let waiting_for_answer = files.open_questions.iter().map(Into::into).collect();
        let data = ExecutionAck { progress, elapsed_seconds, waiting_for_answer, ..acknowledgement };
        // Repeating the call would start another task, so the hint is to wait for this one.
        let parting = IncompleteReason::CallExpired(Some(WaitHint::for_task(&task.id)));
        let mut output = CommandOutput::incomplete(make_data(data), parting);
        report_obstacles(engine, std::slice::from_ref(&task), &mut output)?;
        return Ok(output);
    }
    let data = ExecutionAck {
        summary: Some(task_data::summary(&task)),
        report: Some(TaskReport::of(
            &task,
            &files,
            None,
            context.config.settings.max_mode,
            context.screen.presentation.call_syntax(),
        )),
        ..acknowledgement
    };
    let output = CommandOutput::of(make_data(data), task_error(&task, &files));
    let output = output.warn(warnings::for_task(&task, &files)).warn(mark_read(engine, &task.id));
    Ok(CommandOutput { child: task_data::child_exit(&task), ..output })
}

pub fn task_error(task: &Task, files: &delegator_engine::TaskFiles) -> Option<AppError> {
    let ended = task.ended.as_ref()?;
    let error = match &ended.end {
        TaskEnd::Completed => verification::failure(task, files.record.as_ref())?,
        TaskEnd::Cancelled { .. } if ended.survivors.is_empty() => {
            AppError::new(ErrorCode::Interrupted, "The task was cancelled.")
        }
        TaskEnd::Cancelled { .. } => {
            let message = "The task was cancelled, but some of its processes could not be killed.";
            AppError::new(ErrorCode::Interrupted, message)
                .in_cleanup()
                .context("survivors", ended.survivors.clone())
        }
        TaskEnd::Timeout(limit) => {
            let code =
                if *limit == LimitKind::Idle { ErrorCode::TimeoutIdle } else { ErrorCode::TimeoutHard };
            let run = files.record.as_ref().map(|record| TimedOutRun {
                idle_seconds: record.quiet_ms / 1000,
                limit_seconds: record.limits.map(|limits| limits.of(*limit)),
                partial_results: PartialResults::of(record),
            });
            let length = run.as_ref().and_then(|run| run.limit_seconds);
            let length = length.map(|seconds| limit_length(*limit, seconds)).unwrap_or_default();
            AppError::new(code, format!("Task exceeded {} timeout{length}.", limit.name())).with_context(
                TimeoutContext {
                    timeout_type: limit.name(),
                    elapsed_seconds: ended.ran_ms.map_or_else(
                        || task_data::RunTimes::of(task).duration_seconds(),
                        |ran_ms| ran_ms / 1000,
                    ),
                    run,
                },
            )
        }
        TaskEnd::Failed { kind, message, retry_at_ms } => {
            let code = failure_code(*kind, agent_acted(files));
            let described = describe(*kind, message, task_data::exit_code(task));
            let tail = files.record.as_ref().map(|record| text::end(&record.last_stderr, 1024).to_owned());
            let error = AppError::new(code, described.message).with_context(FailureContext {
                failure_kind: kind.name(),
                agent_message: described.agent_message,
                retry_at: retry_at_ms.map(UtcTime::from_ms),
                exit_code: task_data::exit_code(task),
                stderr_tail: tail.unwrap_or_default(),
                position: error_context::position(files.record.as_ref()),
            });
            let error = match kind {
                FailureKind::Auth => error.suggest(sign_in(&task.agent, task.remote.is_some())),
                _ => error,
            };
            let wait = retry_at_ms.map(|time| time_until(time, Timestamp::now()));
            AppError { retry_after: wait, ..error }
        }
    };
    let thread = task_data::thread(task);
    Some(error.context("task_id", task.id.as_str()).optional_context("thread_id", thread))
}

/// The length of a limit, such as ` (5 minutes with no output)`.
fn limit_length(limit: LimitKind, seconds: u64) -> String {
    let (count, unit) =
        if seconds.is_multiple_of(60) { (seconds / 60, "minute") } else { (seconds, "second") };
    let measure = if limit == LimitKind::Idle { "with no output" } else { "in total" };
    format!(" ({} {measure})", plural(count, unit))
}

fn time_until(time_ms: i64, now: Timestamp) -> Duration {
    Duration::from_millis(time_ms.saturating_sub(now.as_millisecond()).try_into().unwrap_or(0))
}

/// Before its first item an agent has changed nothing, so a precise code (which may be retryable) is safe.
fn failure_code(kind: FailureKind, agent_acted: bool) -> ErrorCode {
    match kind {
        FailureKind::Auth if !agent_acted => ErrorCode::Unauthenticated,
        FailureKind::UsageLimit if !agent_acted => ErrorCode::QuotaExhausted,
        FailureKind::RateLimit if !agent_acted => ErrorCode::RateLimited,
        FailureKind::Network if !agent_acted => ErrorCode::NetworkError,
        FailureKind::SupervisorStartFailed => ErrorCode::SupervisorUnavailable,
        FailureKind::AgentExit | FailureKind::Killed => ErrorCode::AgentExited,
        FailureKind::NoTerminalEvent => ErrorCode::AgentProtocolError,
        _ => ErrorCode::AgentFailed,
    }
}

fn agent_acted(files: &delegator_engine::TaskFiles) -> bool {
    files.record.as_ref().is_some_and(|record| has_acted(&record.report))
}
