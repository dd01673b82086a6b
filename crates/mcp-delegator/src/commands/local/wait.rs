//! `local wait`: wait until one, any or all of several tasks end.
//!
//! If the time limit passes first, the output has the state `working`; repeating the call continues the wait. The task's
//! own failure is data, and an error only with `exit_status`.

use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

use delegator_config::built_in_default;
use delegator_domain::task::State;
use delegator_engine::wait_thread::{GroupWaitOutcome, WaitGoal};
use delegator_engine::{Engine, TaskFiles, WaitOutcome};
use delegator_registry::Task;

use crate::commands::blocking::{AfterWait, Started, TaskWait};
use crate::commands::context::Context;
use crate::commands::inputs::{self, TaskRef};
use crate::commands::local::output_budget;
use crate::commands::local::run::task_error;
use crate::commands::local::tasks::{engine, first_ended, refresh, resolve_task, task_result};
use crate::commands::{Command, prepare};
use crate::error::{AppError, ErrorCode};
use crate::output::data::task::{
    RunTimes, TaskResult, UnfinishedTask, WaitData, WaitFacts, WaitedTask, WaitedTasks,
};
use crate::output::data::{task as task_data, warnings};
use crate::output::outcome::{ChildExit, CommandOutput, IncompleteReason, WaitHint};
use crate::spec::{Category, CommandSpec, Danger, Shape, Toolset};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Wait {
    /// Task id
    #[schemars(extend("x-positional" = true))]
    pub task_id: Option<TaskRef>,
    /// Several tasks
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub task_ids: Vec<TaskRef>,
    /// All or any of task_ids
    #[serde(default)]
    #[schemars(schema_with = "inputs::wait_goals", extend("default" = "all"))]
    pub until: WaitGoal,
    /// Seconds to wait; CLI: no limit
    #[schemars(range(min = 1, max = 3600), extend("default" = built_in_default("call_budget_sec")))]
    pub timeout_sec: Option<u32>,
    /// Include output
    #[serde(default)]
    pub include_output: bool,
    /// Limit of that output in bytes
    #[serde(default)]
    #[schemars(
        with = "u32",
        range(min = 1024, max = 1_048_576),
        extend("default" = super::output_budget())
    )]
    pub max_output_bytes: Option<u32>,
    /// Return an error if the task did not complete (exit 80, 10 or 130)
    #[serde(default)]
    #[schemars(extend("x-advanced" = true))]
    pub exit_status: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "State working: time limit passed; call again.",
    category: Category::WaitResult,
    shape: Shape::Show("task"),
    danger: Danger::Safe,
    idempotent: true,
    open_ended: true,
    toolset: Toolset::Local,
    failures: &[
        ErrorCode::TaskNotFound,
        ErrorCode::InvalidId,
        ErrorCode::Incomplete,
        ErrorCode::AgentFailed,
        ErrorCode::TimeoutIdle,
        ErrorCode::TimeoutHard,
    ],
    exactly_one_of: &["task_id", "task_ids"],
    ..CommandSpec::new::<Wait, WaitData>(&["local", "wait"], "Wait until a task ends")
};

pub const COMMAND: Command = Command {
    describe: crate::output::documents::task::result,
    prepare: Some(|input| prepare(input, run)),
    ..Command::new(&SPEC)
};

fn run(context: &Context<'_>, input: Wait) -> Result<Started, AppError> {
    let engine = engine(context)?;
    let given = input.task_id.iter().chain(&input.task_ids);
    let ids = given.map(|given| resolve_task(&engine, given)).collect::<Result<Vec<_>, _>>()?;
    let requested = input.timeout_sec.map(|seconds| Duration::from_secs(seconds.into()));
    let timeout = requested.or(context.call_budget);
    Ok(Started::Waiting(TaskWait { ids, goal: input.until, timeout }, AfterWait::Wait(input)))
}

pub fn after_wait(
    context: &Context<'_>,
    watched: GroupWaitOutcome,
    input: &Wait,
) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let watched = refresh(&engine, watched)?;
    match (&input.task_id, input.until) {
        (None, WaitGoal::All) => combined_output(context, &engine, input, &watched.tasks),
        (None, WaitGoal::Any) => {
            let pending = task_ids(watched.tasks.iter().filter(|task| !task.state.is_terminal()));
            Ok(single_output(context, &engine, input, first_ended(watched)?)?.fact("pending", pending))
        }
        (Some(_), _) => single_output(context, &engine, input, first_ended(watched)?),
    }
}

fn task_ids<'a>(tasks: impl Iterator<Item = &'a Task>) -> Vec<String> {
    tasks.map(|task| task.id.to_string()).collect()
}

fn single_output(
    context: &Context<'_>,
    engine: &Engine,
    input: &Wait,
    waited: WaitOutcome,
) -> Result<CommandOutput, AppError> {
    let WaitOutcome { task, expired } = waited;
    if expired {
        // For several tasks the hint is to repeat the call.
        let reattach = input.task_id.is_some().then(|| WaitHint::for_task(&task.id));
        let data = unfinished(engine, &task)?;
        return Ok(CommandOutput::incomplete(data, IncompleteReason::CallExpired(reattach)));
    }
    let files = engine.files(&task.id)?;
    let data = ended_task(context, engine, input, &task, &files)?;
    let error = if input.exit_status { task_error(&task, &files) } else { None };
    let output = match error {
        // exit_status has one code for a failed task, whatever the cause.
        Some(error) if task.state == State::Failed => {
            CommandOutput::failed(AppError { code: ErrorCode::AgentFailed, ..error }, data)
        }
        Some(error) => CommandOutput::failed(error, data),
        None => CommandOutput::done(data),
    };
    let mut output = output.with_facts(WaitFacts::from(RunTimes::of(&task)));
    output.warnings.extend(warnings::for_task(&task, &files));
    output.child = task_data::exit_code(&task).map(|code| ChildExit { code: Some(code) });
    engine.mark_read(&task.id)?;
    Ok(output)
}

fn ended_task(
    context: &Context<'_>,
    engine: &Engine,
    input: &Wait,
    task: &Task,
    files: &TaskFiles,
) -> Result<TaskResult, AppError> {
    let budget = input.max_output_bytes.unwrap_or_else(output_budget);
    task_result(context, engine, task, files, input.include_output, budget)
}

fn unfinished(engine: &Engine, task: &Task) -> Result<UnfinishedTask, AppError> {
    let files = engine.files(&task.id)?;
    Ok(UnfinishedTask::of(task, files.snapshot.as_ref()))
}

/// The output for all tasks, finished or not.
fn combined_output(
    context: &Context<'_>,
    engine: &Engine,
    input: &Wait,
    tasks: &[Task],
) -> Result<CommandOutput, AppError> {
    let (mut items, mut all_warnings) = (Vec::new(), Vec::new());
    for task in tasks {
        if !task.state.is_terminal() {
            items.push(WaitedTask::Unfinished(unfinished(engine, task)?));
            continue;
        }
        let files = engine.files(&task.id)?;
        all_warnings.extend(warnings::for_task(task, &files));
        items.push(WaitedTask::Ended(Box::new(ended_task(context, engine, input, task, &files)?)));
    }
    for task in tasks.iter().filter(|task| task.state.is_terminal()) {
        engine.mark_read(&task.id)?;
    }
    let data = WaitedTasks { tasks: items };
    let pending = task_ids(tasks.iter().filter(|task| !task.state.is_terminal()));
    let output = match pending.is_empty() {
        true => CommandOutput::done(data),
        false => {
            CommandOutput::incomplete(data, IncompleteReason::CallExpired(None)).fact("pending", pending)
        }
    };
    Ok(CommandOutput { warnings: all_warnings, ..output })
}
