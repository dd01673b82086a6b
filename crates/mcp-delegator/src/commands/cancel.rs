//! `cancel`: cancel several tasks, by id or by filter.
//!
//! All tasks are signalled before the command waits for the first, so the total time is that of the slowest. An input
//! without ids, `all` or a filter is refused: an empty call must never cancel everything.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use delegator_domain::task::{State, TaskId};
use delegator_engine::CancelReport;
use delegator_registry::{Filter, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commands::context::Context;
use crate::commands::inputs::{self, TaskRef};
use crate::commands::local::attach::max_cancel_time;
use crate::commands::local::cancel::{still_ending, survivors, survivors_warning};
use crate::commands::local::status::absolute_dir;
use crate::commands::local::tasks::{engine, resolve_task};
use crate::commands::{Command, prepare};
use crate::error::{AppError, ErrorCode, Problem};
use crate::output::documents::document::{Block, Document, rows};
use crate::output::outcome::{CommandOutput, Completion, Warning};
use crate::spec::{CommandSpec, Danger, Example, Shape};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct CancelMany {
    /// Task ids
    #[serde(default)]
    #[schemars(extend("x-positional" = true, "default" = null))]
    pub task_ids: Vec<TaskRef>,
    /// All tasks that have not ended
    #[serde(default)]
    pub all: bool,
    /// Only queued or only working tasks
    #[serde(default)]
    #[schemars(schema_with = "inputs::live_states")]
    pub state: Option<State>,
    /// Only tasks in or below this directory
    #[schemars(length(min = 1, max = 4096))]
    pub working_dir: Option<PathBuf>,
    /// Only tasks with all of these labels
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub labels: BTreeMap<String, String>,
    /// Reason, stored with the task
    #[schemars(length(min = 1, max = 1000))]
    pub reason: Option<String>,
    /// Report what would be cancelled; change nothing
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct CancelledTasks {
    pub operation: &'static str,
    pub dry_run: bool,
    pub count: usize,
    pub tasks: Vec<CancelledEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct CancelledEntry {
    pub task_id: String,
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_state: Option<&'static str>,
    pub title: String,
    /// Processes that could not be killed.
    #[serde(skip_serializing_if = "Option::is_none")]
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

pub const SPEC: CommandSpec = CommandSpec {
    details: "Give task ids, --all, or a filter by state, directory or label. All tasks are signalled first, then the command waits for all of them.",
    shape: Shape::Action("tasks_cancelled"),
    danger: Danger::Destructive,
    idempotent: true,
    failures: &[ErrorCode::TaskNotFound, ErrorCode::InvalidId],
    examples: &[
        Example {
            command: "mcp-delegator cancel --all --dry-run",
            shows: "the tasks that would be cancelled",
        },
        Example {
            command: "mcp-delegator cancel --labels team=parser --state queued",
            shows: "the queued tasks with that label, cancelled",
        },
    ],
    check,
    ..CommandSpec::new::<CancelMany, CancelledTasks>(&["cancel"], "Cancel several tasks")
};

pub const COMMAND: Command =
    Command { describe, prepare: Some(|input| prepare(input, run)), ..Command::new(&SPEC) };

/// Requires ids, `all` or a filter, so that an empty input cancels nothing.
fn check(input: &Value) -> Vec<Problem> {
    let is_given = |key: &str| match input.get(key) {
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(items)) => !items.is_empty(),
        Some(Value::Bool(value)) => *value,
        other => other.is_some_and(|value| !value.is_null()),
    };
    let by_filter = ["all", "state", "working_dir", "labels"].into_iter().find(|key| is_given(key));
    match (is_given("task_ids"), by_filter) {
        (false, None) => vec![
            Problem::new(
                ErrorCode::MissingArgument,
                "task_ids",
                "is missing, and neither all nor a filter is given",
            )
            .suggest(Some("Give task_ids, or set all to true; dry_run shows what would be cancelled.")),
        ],
        (true, Some(filter)) => {
            vec![Problem::new(ErrorCode::InvalidValue, filter, "cannot be given together with task_ids")]
        }
        _ => Vec::new(),
    }
}

fn run(context: &Context<'_>, input: CancelMany) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let ids: Vec<TaskId> = if input.task_ids.is_empty() {
        engine.unfinished_tasks(&task_filter(context, &input))?.into_iter().map(|task| task.id).collect()
    } else {
        input.task_ids.iter().map(|given| resolve_task(&engine, given)).collect::<Result<_, _>>()?
    };
    if input.dry_run {
        let tasks = ids.iter().map(|id| engine.task(id)).collect::<Result<Vec<Task>, _>>()?;
        let tasks: Vec<Task> = tasks.into_iter().filter(|task| !task.state.is_terminal()).collect();
        return Ok(dry_run_output(&tasks));
    }
    let timeout = max_cancel_time(context);
    let cancelled = engine.cancel_all(&ids, input.reason.as_deref(), timeout)?;
    Ok(cancelled_output(&cancelled, timeout))
}

fn task_filter(context: &Context<'_>, input: &CancelMany) -> Filter {
    let states = input.state.map(State::with_same_public_name).unwrap_or_default();
    let working_dir = input.working_dir.as_deref().map(|dir| absolute_dir(context, dir));
    Filter { states, working_dir, labels: input.labels.clone(), since_ms: None }
}

fn dry_run_output(tasks: &[Task]) -> CommandOutput {
    let tasks = tasks.iter().map(|task| CancelledEntry::of(task, None)).collect::<Vec<_>>();
    let count = tasks.len();
    CommandOutput::done(CancelledTasks { operation: "cancel", dry_run: true, count, tasks })
        .fact("dry_run", true)
}

fn cancelled_output(cancelled: &[CancelReport], timeout: Duration) -> CommandOutput {
    let tasks = cancelled.iter().map(|entry| CancelledEntry::of(&entry.task, Some(entry))).collect();
    let count = cancelled.iter().filter(|entry| entry.task.state == State::Cancelled).count();
    let data = json!(CancelledTasks { operation: "cancel", dry_run: false, count, tasks });
    let warning = |entry: &CancelReport| match entry.still_ending {
        true => Some(Warning::new("W_CANCEL_002", still_ending(&entry.task, timeout).message)),
        false => survivors_warning(entry.task.id.as_str(), survivors(entry)),
    };
    let warnings: Vec<Warning> = cancelled.iter().filter_map(warning).collect();
    let completion = if warnings.is_empty() { Completion::Done(data) } else { Completion::Partial(data) };
    CommandOutput { warnings, ..CommandOutput::new(completion).fact("dry_run", false) }
}

fn describe(data: &Value) -> Document {
    let count = data["count"].as_u64().unwrap_or(0);
    let plural = if count == 1 { "" } else { "s" };
    let would = if data["dry_run"] == true { " would be" } else { "" };
    let document = Document::titled(format!("{count} task{plural}{would} cancelled"));
    match rows(&data["tasks"], &["task_id", "previous_state", "state", "title"]) {
        rows if rows.is_empty() => document,
        rows => document.block(Block::Table { columns: vec!["task", "was", "is", "title"], rows }),
    }
}
