//! `cancel`: cancel several tasks, by id or by filter.
//!
//! All tasks are signalled before the command waits for the first, so the total time is that of the slowest.
//! An input without ids, `all` or a filter is refused: an empty call must never cancel everything.

use delegator_domain::task::State;
use delegator_engine::CancelReport;
use delegator_registry::Filter;

use crate::commands::local::attach::max_cancel_time;
use crate::commands::local::attempts::{Targets, ended_attempts, resolve_targets};
use crate::commands::local::status::absolute_dir;
use crate::commands::prelude::*;
use crate::output::batch::Batch;
use crate::output::data::batch::BatchResult;

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CancelMany {
    /// Ids of tasks or groups
    #[schemars(extend("x-markers" = [Marker::Positional], "default" = null))]
    pub task_ids: Vec<TaskRef>,
    /// All tasks that have not ended
    pub all: bool,
    /// Only queued or only working tasks
    #[schemars(with = "String", extend("enum" = ["queued", "working"]))]
    pub state: Option<State>,
    /// Only tasks in or below this directory
    #[schemars(length(min = 1, max = 4096))]
    pub working_dir: Option<PathBuf>,
    /// Only tasks with all of these labels
    #[schemars(extend("default" = null))]
    pub labels: BTreeMap<String, String>,
    /// Reason, stored with the task
    #[schemars(length(min = 1, max = 1000))]
    pub reason: Option<String>,
    /// Report what would be cancelled; change nothing
    pub dry_run: bool,
    /// Without ids and filters: cancel the last submission of this directory without a question
    #[schemars(extend("x-markers" = [Marker::Consent]))]
    pub confirm: bool,
}

/// The inputs that select tasks without naming them.
pub const FILTERS: [&str; 4] = ["all", "state", "working_dir", "labels"];

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CancelledTasks {
    pub operation: &'static str,
    pub dry_run: bool,
    /// Tasks that were cancelled by this call, or would be.
    pub count: usize,
    /// The result in one sentence.
    pub summary: String,
    pub tasks: Vec<CancelledEntry>,
    #[serde(flatten)]
    pub batch: BatchResult,
}

/// The result of one task in the batch.
#[derive(Debug, Clone, Serialize)]
struct CancelledState {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_state: Option<&'static str>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CancelledEntry {
    pub task_id: String,
    pub state: &'static str,
    pub previous_state: Option<&'static str>,
    pub title: String,
    /// Processes that could not be killed.
    pub survivors: Option<Vec<i32>>,
}

impl CancelledEntry {
    fn of(task: &Task, cancelled: Option<&CancelReport>) -> CancelledEntry {
        CancelledEntry {
            task_id: task.id.to_string(),
            state: task.state.public_name(),
            previous_state: cancelled.map(|cancelled| cancelled.previous.public_name()),
            title: task.title.clone(),
            survivors: cancelled.map(|cancelled| survivors(cancelled).to_vec()),
        }
    }
}

const CANCEL_PLANNED: &str = "cancel_planned";
pub const NOTHING_TO_CANCEL: &str = "nothing_to_cancel";
pub const TASKS_CANCELLED: &str = "tasks_cancelled";

pub const SPEC: CommandSpec = CommandSpec {
    details: "Give task ids, --all, or a filter by state, directory or label. All tasks are signalled first, then the command waits for all of them. A task that cannot be cancelled does not stop the others.",
    shape: Shape::Action(TASKS_CANCELLED),
    other_actions: &[CANCEL_PLANNED, NOTHING_TO_CANCEL],
    danger: Danger::Destructive,
    idempotent: true,
    config: ConfigUse::ValidPart,
    failures: &[
        ErrorCode::WrongState,
        ErrorCode::PartialFailure,
        ErrorCode::AllItemsFailed,
        ErrorCode::TimeoutWall,
        ErrorCode::Unsupported,
    ],
    examples: &[
        example("mcp-delegator cancel --all --dry-run", "the tasks that would be cancelled"),
        example(
            "mcp-delegator cancel --labels team=parser --state queued",
            "the queued tasks with that label, cancelled",
        ),
    ],
    input: InputType::with_rules::<CancelMany>(),
    ..CommandSpec::new::<CancelMany, CancelledTasks>(&["cancel"], "Cancel several tasks")
};

impl InputRules for CancelMany {
    /// Requires ids, `all` or a filter, so that an empty input cancels nothing.
    fn problems(&self) -> Vec<Problem> {
        let is_given = [self.all, self.state.is_some(), self.working_dir.is_some(), !self.labels.is_empty()];
        let by_filter = FILTERS.into_iter().zip(is_given).find(|(_, is_given)| *is_given);
        match (self.task_ids.is_empty(), by_filter) {
            (true, None) => {
                let message = "is missing, and neither {input:all} nor a filter is given";
                let hint =
                    "Give {input:task_ids}, or {set:all}; {input:dry_run} shows what would be cancelled.";
                vec![Problem::new(ErrorCode::MissingArgument, "task_ids", message).suggest(Some(hint))]
            }
            (false, Some((filter, _))) => vec![Problem::excluded(filter, "task_ids")],
            _ => Vec::new(),
        }
    }
}

pub fn run(context: &Context<'_>, input: CancelMany) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let targets: Targets = if input.task_ids.is_empty() {
        let unfinished = engine.results().unfinished_tasks(&task_filter(context, &input))?;
        unfinished.into_iter().map(|task| (task.id.to_string(), Ok(task.id))).collect()
    } else {
        cancel_targets(&engine, &input.task_ids)?
    };
    let batch = Batch::new(context.screen.presentation.call_syntax(), input.dry_run);
    if input.dry_run {
        Ok(dry_run_output(&engine, targets, batch))
    } else {
        cancel(&engine, targets, batch, input.reason.as_deref(), max_cancel_time(context))
    }
}

/// The tasks to cancel, and what follows them in a chain. A group, and an ended task that others follow, count only with
/// what has not ended.
fn cancel_targets(engine: &Engine, given: &[TaskRef]) -> Result<Targets, AppError> {
    let ended: Vec<TaskId> = given.iter().flat_map(|given| ended_attempts(engine, given)).collect();
    let mut targets = Targets::new();
    for (target, id) in resolve_targets(engine, given) {
        let followers =
            id.as_ref().map_or_else(|_| Ok(Vec::new()), |id| engine.results().unfinished_followers(id))?;
        let is_done = |id: &TaskId| -> Result<bool, AppError> {
            Ok(ended.contains(id)
                || !followers.is_empty() && engine.results().recorded_task(id)?.state.is_terminal())
        };
        let own = match &id {
            Ok(found) if is_done(found)? => None,
            _ => Some((target, id)),
        };
        let followers = followers.into_iter().map(|task| (task.id.to_string(), Ok(task.id)));
        for target in own.into_iter().chain(followers) {
            if !targets.iter().any(|(known, _)| *known == target.0) {
                targets.push(target);
            }
        }
    }
    Ok(targets)
}

/// Cancels what has not ended of a group, or of the tasks that follow a task in a chain.
pub fn cancel_rest(
    context: &Context<'_>,
    engine: &Engine,
    group_or_task: &TaskRef,
    reason: Option<&str>,
) -> Result<CommandOutput, AppError> {
    let batch = Batch::new(context.screen.presentation.call_syntax(), false);
    let targets = cancel_targets(engine, std::slice::from_ref(group_or_task))?;
    let output = cancel(engine, targets, batch, reason, max_cancel_time(context))?;
    Ok(CommandOutput { shape: output.shape.or(Some(Shape::Action(TASKS_CANCELLED))), ..output })
}

fn task_filter(context: &Context<'_>, input: &CancelMany) -> Filter {
    let states = input.state.map(State::with_same_public_name).unwrap_or_default();
    let working_dir = input.working_dir.as_deref().map(|dir| absolute_dir(context, dir));
    Filter { states, working_dir, labels: input.labels.clone(), ..Filter::default() }
}

/// Reports every task as [`cancel`] would.
fn dry_run_output(engine: &Engine, targets: Targets, mut batch: Batch<'_>) -> CommandOutput {
    let mut tasks = Vec::new();
    for (target, id) in targets {
        let task = id.and_then(|id| Ok(engine.results().task(&id)?)).and_then(|task| match task.state {
            state if state.is_terminal() && state != State::Cancelled => Err(already_ended(&task)),
            _ => Ok(task),
        });
        match task {
            Ok(task) => {
                batch.succeeded(
                    target,
                    CancelledState { state: task.state.public_name(), previous_state: None },
                );
                tasks.push(CancelledEntry::of(&task, None));
            }
            Err(error) => batch.failed(target, error),
        }
    }
    let count = tasks.iter().filter(|task| task.state != State::Cancelled.public_name()).count();
    output(batch, tasks, count, true)
}

fn cancel(
    engine: &Engine,
    targets: Targets,
    mut batch: Batch<'_>,
    reason: Option<&str>,
    timeout: Duration,
) -> Result<CommandOutput, AppError> {
    let ids: Vec<TaskId> = targets.iter().filter_map(|(_, id)| id.as_ref().ok().cloned()).collect();
    let mut reports = engine.cancellations().cancel_all(&ids, reason, timeout)?.into_iter();
    let (mut tasks, mut warnings, mut count) = (Vec::new(), Vec::new(), 0);
    for (target, id) in targets {
        let report = id.and_then(|id| {
            let unknown = || EngineError::UnknownTask { given: id.to_string() };
            let report = reports.next().unwrap_or_else(|| Err(unknown()))?;
            if report.still_ending { Err(still_ending(&report.task, timeout)) } else { Ok(report) }
        });
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                batch.failed(target, error);
                continue;
            }
        };
        warnings.extend(mark_read(engine, &report.task.id));
        count += usize::from(!report.was_cancelled);
        let entry = CancelledEntry::of(&report.task, Some(&report));
        batch.succeeded(target, CancelledState { state: entry.state, previous_state: entry.previous_state });
        warnings.extend(survivors_warning(&entry.task_id, survivors(&report)));
        tasks.push(entry);
    }
    Ok(CommandOutput { warnings, ..output(batch, tasks, count, false) })
}

fn already_ended(task: &Task) -> AppError {
    EngineError::AlreadyEnded { task: task.id.clone(), state: task.state }.into()
}

fn output(batch: Batch<'_>, tasks: Vec<CancelledEntry>, count: usize, dry_run: bool) -> CommandOutput {
    let shape = match (dry_run, count) {
        (true, _) => Some(Shape::Action(CANCEL_PLANNED)),
        (false, 0) => Some(Shape::Action(NOTHING_TO_CANCEL)),
        (false, _) => None,
    };
    let result = batch.result();
    let summary = summary(count, result.total_operations, dry_run);
    let data = CancelledTasks { operation: "cancel", dry_run, count, summary, tasks, batch: result };
    let message = Some(data.summary.clone());
    CommandOutput { message, shape, ..batch.into_output(data).fact("dry_run", dry_run) }
}

fn summary(count: usize, total: usize, dry_run: bool) -> String {
    let of_total = if count < total { format!(" of {total}") } else { String::new() };
    let plural = if count.max(total) == 1 { "" } else { "s" };
    match (count, total, dry_run) {
        (_, 0, _) => "No task to cancel".to_owned(),
        (0, _, false) => "No task was cancelled".to_owned(),
        (0, _, true) => "No task would be cancelled".to_owned(),
        (_, _, false) => format!("{count}{of_total} task{plural} cancelled"),
        (_, _, true) => format!("{count}{of_total} task{plural} would be cancelled"),
    }
}

impl CommandData for CancelledTasks {
    fn document(&self) -> Document {
        let row = |task: &CancelledEntry| {
            vec![
                task.task_id.clone(),
                cell(task.previous_state.as_ref()),
                task.state.to_owned(),
                task.title.clone(),
            ]
        };
        let document = Document::titled(&self.summary);
        if self.tasks.is_empty() {
            return document;
        }
        let (columns, rows) = (vec!["task", "was", "is", "title"], self.tasks.iter().map(row).collect());
        document.block(Block::Table { columns, rows })
    }
}

pub fn survivors(cancelled: &CancelReport) -> &[i32] {
    cancelled.task.ended.as_ref().map_or(&[], |ended| &ended.survivors)
}

pub fn still_ending(task: &Task, timeout: Duration) -> AppError {
    let message =
        format!("Task {} has not ended within {} s; it is still being ended.", task.id, timeout.as_secs());
    let wait = NextCall::for_task(&["local", "wait"], task.id.as_str());
    AppError::wall_timeout(message, timeout)
        .in_cleanup()
        .context("task_id", task.id.as_str())
        .context("state", task.state.public_name())
        .suggest_call("Wait for its end: {call}", wait)
}

pub fn survivors_warning(id: &str, survivors: &[i32]) -> Option<Warning> {
    let message =
        format!("kill_incomplete: some processes of {id} could not be killed: {}", json!(survivors));
    (!survivors.is_empty()).then(|| Warning::new(WarningCode::KillIncomplete, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_states_what_happened_to_how_many_tasks() {
        assert_eq!(summary(0, 0, false), "No task to cancel");
        assert_eq!(summary(0, 0, true), "No task to cancel");
        assert_eq!(summary(0, 2, false), "No task was cancelled");
        assert_eq!(summary(0, 2, true), "No task would be cancelled");
        assert_eq!(summary(1, 1, false), "1 task cancelled");
        assert_eq!(summary(1, 2, false), "1 of 2 tasks cancelled");
        assert_eq!(summary(2, 2, true), "2 tasks would be cancelled");
    }
}
