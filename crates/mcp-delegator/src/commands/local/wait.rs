//! `local wait`: wait until one, any or all of several tasks end.
//!
//! If the time limit passes first, the output has the state `working`; repeating the call continues the wait.
//! The task's own failure is data, and an error only with `exit_status`.

use std::collections::BTreeSet;

use jiff::Timestamp;

use delegator_config::built_in_default;
use delegator_domain::task::State;
use delegator_engine::wait_thread::{GroupWaitOutcome, WaitGoal};
use delegator_engine::{AwaitedTasks, TaskFiles, WaitOutcome};
use delegator_registry::Filter;

use crate::commands::local::attempts::{Targets, resolve_targets, resolve_tasks};
use crate::commands::local::output_budget;
use crate::commands::local::run::task_error;
use crate::commands::local::status::RECENT_MS;
use crate::commands::local::tasks::{first_ended, refresh, report_obstacles, task_result};
use crate::commands::prelude::*;
use crate::commands::{AfterWait, Started, TaskWait};
use crate::output::batch::Batch;
use crate::output::data::stored_task::RunTimes;
use crate::output::data::task::{
    EndedItem, TaskResult, UnfinishedTask, WaitData, WaitMeta, WaitedTask, WaitedTasks,
};
use crate::output::data::{chain, stored_task as task_data, warnings};
use crate::output::outcome::{IncompleteReason, WaitHint};

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Wait {
    /// Task id
    #[schemars(extend("x-markers" = [Marker::Positional, Marker::Several("task_ids".into()), Marker::SelfExplanatory]))]
    pub task_id: Option<TaskRef>,
    /// Several tasks
    #[schemars(extend("default" = null, "x-markers" = [Marker::SelfExplanatory]))]
    pub task_ids: Vec<TaskRef>,
    /// All tasks with these labels that have not ended, or ended within 24 hours
    #[schemars(extend("x-markers" = [Marker::Advanced], "default" = null))]
    pub labels: BTreeMap<String, String>,
    /// All or any of them
    #[schemars(with = "String", extend("enum" = ["all", "any"], "default" = "all", "x-markers" = [Marker::SelfExplanatory]))]
    pub until: WaitGoal,
    /// Seconds to wait; CLI: on the command line, no limit unless given
    #[schemars(range(min = 1, max = 3600), extend("default" = built_in_default("call_budget_sec"), "x-markers" = [Marker::SelfExplanatory]))]
    pub timeout_sec: Option<u32>,
    /// Include output
    #[schemars(extend("x-markers" = [Marker::SelfExplanatory]))]
    pub include_output: bool,
    /// Output limit
    #[schemars(
        with = "u32",
        range(min = 1024, max = 1_048_576),
        extend("default" = super::output_budget(), "x-markers" = [Marker::SelfExplanatory])
    )]
    pub max_output_bytes: Option<u32>,
    /// Also wait for the tasks that follow in a chain
    #[schemars(extend("x-markers" = [Marker::Advanced]))]
    pub chain: bool,
    /// Return an error if the task did not complete (exit 80, 10 or 130)
    #[schemars(extend("x-markers" = [Marker::Advanced]))]
    pub exit_status: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Returns its result. Still working: call again.",
    category: Category::WaitResult,
    shape: Shape::Show("task"),
    other_shape: Some(Shape::List("tasks")),
    open_ended: true,
    toolset: Toolset::Local,
    config: ConfigUse::ValidPart,
    failures: &[
        ErrorCode::PartialFailure,
        ErrorCode::AllItemsFailed,
        ErrorCode::Incomplete,
        ErrorCode::AgentFailed,
        ErrorCode::TimeoutIdle,
        ErrorCode::TimeoutHard,
    ],
    exactly_one_of: &["task_id", "task_ids", "labels"],
    ..CommandSpec::read_only::<Wait, WaitData>(&["local", "wait"], "Wait until a task ends")
};

/// A wait whose ids are resolved once: a prefix that becomes ambiguous during the wait does not change the
/// response.
#[derive(Debug)]
pub struct ResolvedWait {
    pub input: Wait,
    /// Ids that could not be resolved are reported after the wait for the others.
    pub targets: Targets,
    /// Further tasks with the labels have ended; the response says so.
    pub has_more_ended: bool,
}

/// Ended tasks that one call with `labels` returns.
const MAX_ENDED: u32 = 100;
const MORE_ENDED: &str =
    "more tasks with these labels ended within 24 hours; only the last 100 are listed, status lists all";

pub fn run(context: &Context<'_>, mut input: Wait) -> Result<Started, AppError> {
    let engine = engine(context)?;
    let (mut targets, mut has_more_ended) = (Targets::new(), false);
    match &input.task_id {
        Some(given) => {
            let ids = resolve_tasks(&engine, given)?;
            targets.extend(ids.into_iter().map(|id| (id.to_string(), Ok(id))));
        }
        None if input.labels.is_empty() => targets = resolve_targets(&engine, &input.task_ids),
        None => {
            let awaited = labelled_tasks(&engine, &input.labels, input.until)?;
            targets.extend(awaited.ids.into_iter().map(|id| (id.to_string(), Ok(id))));
            has_more_ended = awaited.has_more_ended;
        }
    }
    if input.chain {
        add_followers(&engine, &mut targets)?;
    }
    // The answer is a list, also for one chain or one group.
    if input.chain || targets.len() > 1 {
        input.task_id = None;
    }
    let ids: Vec<TaskId> = targets.iter().filter_map(|(_, id)| id.as_ref().ok().cloned()).collect();
    let wait = ResolvedWait { input, targets, has_more_ended };
    if ids.is_empty() {
        let nothing = GroupWaitOutcome { tasks: Vec::new(), expired: false };
        return Ok(WaitOutput { context, engine: &engine, wait: &wait }.list(&nothing)?.into());
    }
    let requested = wait.input.timeout_sec.map(|seconds| Duration::from_secs(seconds.into()));
    let timeout = requested.or(context.call_budget);
    Ok(Started::Waiting(TaskWait { ids, goal: wait.input.until, timeout }, AfterWait::Wait(wait)))
}

fn add_followers(engine: &Engine, targets: &mut Targets) -> Result<(), AppError> {
    let given: Vec<TaskId> = targets.iter().filter_map(|(_, id)| id.as_ref().ok().cloned()).collect();
    let mut known: BTreeSet<TaskId> = given.iter().cloned().collect();
    for id in given {
        let followers = engine.results().rest_of_chain(&id)?.into_iter().map(|task| task.id);
        let new: Vec<TaskId> = followers.filter(|id| known.insert(id.clone())).collect();
        targets.extend(new.into_iter().map(|id| (id.to_string(), Ok(id))));
    }
    Ok(())
}

/// The tasks with these labels; an error if there are none. A wait for any of them prefers unread ones, so
/// that repeated calls return one result after the other.
fn labelled_tasks(
    engine: &Engine,
    labels: &BTreeMap<String, String>,
    until: WaitGoal,
) -> Result<AwaitedTasks, AppError> {
    let filter = Filter { labels: labels.clone(), ..Filter::default() };
    let since_ms = Timestamp::now().as_millisecond() - RECENT_MS;
    let awaited = engine.results().awaited_tasks(&filter, since_ms, MAX_ENDED, until == WaitGoal::Any)?;
    if !awaited.ids.is_empty() {
        return Ok(awaited);
    }
    let message = "No task with these labels is queued or running, and none ended within 24 hours.";
    let status = NextCall::new(&["local", "status"]).with("labels", json!(labels));
    Err(AppError::new(ErrorCode::TaskNotFound, message)
        .suggest_call("List the tasks with these labels: {call}", status))
}

pub fn after_wait(
    context: &Context<'_>,
    watched: GroupWaitOutcome,
    wait: &ResolvedWait,
) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let watched = refresh(&engine, watched)?;
    let output = WaitOutput { context, engine: &engine, wait };
    let mut output = match &wait.input.task_id {
        Some(_) => output.single(first_ended(&watched)?)?,
        None => output.list(&watched)?,
    };
    output.warnings.extend(wait.has_more_ended.then(|| Warning::new(WarningCode::MoreEnded, MORE_ENDED)));
    report_obstacles(&engine, &watched.tasks, &mut output)?;
    Ok(output)
}

struct WaitOutput<'a> {
    context: &'a Context<'a>,
    engine: &'a Engine,
    wait: &'a ResolvedWait,
}

impl WaitOutput<'_> {
    fn single(&self, waited: WaitOutcome) -> Result<CommandOutput, AppError> {
        let WaitOutcome { task, expired } = waited;
        if expired {
            let reattach = Some(WaitHint::for_task(&task.id));
            let data = unfinished(self.engine, &task)?;
            return Ok(CommandOutput::incomplete(data, IncompleteReason::CallExpired(reattach)));
        }
        let files = self.engine.results().files(&task.id)?;
        let data = self.ended_task(&task, &files)?;
        let output = CommandOutput::of(data, self.exit_status_error(&task, &files));
        let output = output.with_facts(WaitMeta::from(RunTimes::of(&task)));
        let output = output.warn(warnings::for_task(&task, &files)).warn(mark_read(self.engine, &task.id));
        Ok(CommandOutput { child: task_data::child_exit(&task), ..output })
    }

    /// The error for a task that did not complete, if the caller wants one.
    fn exit_status_error(&self, task: &Task, files: &TaskFiles) -> Option<AppError> {
        // A chain takes one branch; the other one is no failure.
        if self.wait.input.chain && chain::is_branch_not_taken(task) {
            return None;
        }
        let error = task_error(task, files).filter(|_| self.wait.input.exit_status)?;
        Some(match task.state {
            // One code for a failed task, whatever the cause.
            State::Failed => AppError { code: ErrorCode::AgentFailed, ..error },
            _ => error,
        })
    }

    fn ended_task(&self, task: &Task, files: &TaskFiles) -> Result<TaskResult, AppError> {
        let input = &self.wait.input;
        let budget = input.max_output_bytes.unwrap_or_else(output_budget);
        task_result(self.context, self.engine, task, files, input.include_output, budget)
    }

    /// The output for several tasks. `all` lists every task, ended or not, `any` the first to end.
    fn list(&self, watched: &GroupWaitOutcome) -> Result<CommandOutput, AppError> {
        let has_ended = watched.tasks.iter().any(|task| task.state.is_terminal());
        let output = match self.wait.input.until {
            WaitGoal::Any if has_ended => self.first(watched)?,
            WaitGoal::Any => self.all(&watched.tasks)?.fact("ended", json!([])),
            WaitGoal::All => self.all(&watched.tasks)?,
        };
        Ok(CommandOutput { shape: Some(Shape::List("tasks")), ..output })
    }

    fn all(&self, tasks: &[Task]) -> Result<CommandOutput, AppError> {
        let (mut batch, mut items, mut warnings) = (self.empty_batch(), Vec::new(), Vec::new());
        for (target, id) in &self.wait.targets {
            let task = awaited_task(tasks, id);
            match task.and_then(|task| Ok((task, self.item(task)?))) {
                Ok((task, item)) => {
                    warnings.extend(item.warnings);
                    items.push(item.data);
                    match item.error {
                        Some(error) => batch.failed(target, error),
                        None => batch.succeeded(target, WaitedState::of(task)),
                    }
                    // A task whose record could not be read stays unread.
                    if task.state.is_terminal() {
                        warnings.extend(mark_read(self.engine, &task.id));
                    }
                }
                Err(error) => batch.failed(target, error),
            }
        }
        let pending = task_ids(tasks.iter().filter(|task| !task.state.is_terminal()));
        let result = (batch.failed_count() > 0).then(|| batch.result());
        let data = WaitedTasks { tasks: items, batch: result };
        let output = if pending.is_empty() {
            batch.into_output(data)
        } else {
            CommandOutput::incomplete(data, IncompleteReason::CallExpired(None)).fact("pending", pending)
        };
        Ok(CommandOutput { warnings, ..output })
    }

    /// The task that ended first, with the ids of all that have ended or not. If an id could not be resolved,
    /// the output has an item for every id.
    fn first(&self, watched: &GroupWaitOutcome) -> Result<CommandOutput, AppError> {
        let first = first_ended(watched)?.task;
        let WaitedItem { data, error, mut warnings } = self.item(&first)?;
        let tasks = vec![data];
        let is_resolved = self.wait.targets.iter().all(|(_, id)| id.is_ok());
        let output = if is_resolved {
            CommandOutput::of(WaitedTasks { tasks, batch: None }, error)
        } else {
            let mut batch = self.empty_batch();
            for (target, id) in &self.wait.targets {
                let task = awaited_task(&watched.tasks, id);
                match task.and_then(|task| self.item_of_any(task)) {
                    Ok(item) => batch.succeeded(target, item),
                    Err(error) => batch.failed(target, error),
                }
            }
            let data = WaitedTasks { tasks, batch: Some(batch.result()) };
            batch.into_output(data)
        };
        warnings.extend(mark_read(self.engine, &first.id));
        let (mut ended, pending): (Vec<&Task>, Vec<&Task>) =
            watched.tasks.iter().partition(|task| task.state.is_terminal());
        ended.sort_by_key(|task| task.ended.as_ref().map(|ended| ended.order));
        let output =
            output.fact("ended", task_ids(ended.into_iter())).fact("pending", task_ids(pending.into_iter()));
        Ok(CommandOutput { warnings, ..output })
    }

    fn empty_batch(&self) -> Batch<'_> {
        Batch::new(self.context.screen.presentation.call_syntax(), false)
    }

    /// The item of one task in a wait for any. A task that has not ended is no failure: the wait for it can
    /// be continued.
    fn item_of_any(&self, task: &Task) -> Result<WaitedState, AppError> {
        if task.state.is_terminal()
            && let Some(error) = self.exit_status_error(task, &self.engine.results().files(&task.id)?)
        {
            return Err(error);
        }
        Ok(WaitedState::of(task))
    }

    fn item(&self, task: &Task) -> Result<WaitedItem, AppError> {
        if !task.state.is_terminal() {
            let data = WaitedTask::Unfinished(Box::new(unfinished(self.engine, task)?));
            return Ok(WaitedItem { data, error: None, warnings: Vec::new() });
        }
        let files = self.engine.results().files(&task.id)?;
        let ended = EndedItem::of(task, self.ended_task(task, &files)?);
        Ok(WaitedItem {
            data: WaitedTask::Ended(Box::new(ended)),
            error: self.exit_status_error(task, &files),
            warnings: warnings::for_task(task, &files),
        })
    }
}

fn unfinished(engine: &Engine, task: &Task) -> Result<UnfinishedTask, AppError> {
    let files = engine.results().files(&task.id)?;
    Ok(UnfinishedTask::of(task, &files, Timestamp::now().as_millisecond()))
}

/// The result of one task in a batch.
#[derive(Debug, Clone, Serialize)]
struct WaitedState {
    state: &'static str,
    summary: String,
}

impl WaitedState {
    fn of(task: &Task) -> WaitedState {
        WaitedState { state: task.state.public_name(), summary: task_data::summary(task) }
    }
}

fn awaited_task<'a>(tasks: &'a [Task], id: &Result<TaskId, AppError>) -> Result<&'a Task, AppError> {
    let id = id.as_ref().map_err(AppError::clone)?;
    let unknown = || EngineError::UnknownTask { given: id.to_string() };
    Ok(tasks.iter().find(|task| task.id == *id).ok_or_else(unknown)?)
}

fn task_ids<'a>(tasks: impl Iterator<Item = &'a Task>) -> Vec<String> {
    tasks.map(|task| task.id.to_string()).collect()
}

struct WaitedItem {
    data: WaitedTask,
    /// Why the item counts as failed.
    error: Option<AppError>,
    warnings: Vec<Warning>,
}
