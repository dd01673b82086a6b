//! `local status`: running, queued and recent tasks.
//!
//! The lists are bounded, and recent tasks are paginated with a cursor that belongs to the filters. Reading the status
//! does not mark a task as read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use delegator_domain::task::State;
use delegator_engine::{Engine, LongLog, OverviewRequest};
use delegator_registry::{Filter, TaskFile};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::commands::context::Context;
use crate::commands::inputs::{self, TaskRef};
use crate::commands::local::tasks::{engine, resolve_task};
use crate::commands::{Command, prepare};
use crate::error::{AppError, ErrorCode};
use crate::output::data::status::{
    NotListed, RunningTask, StatusCounts, StatusFacts, StatusSnapshot, Unread,
};
use crate::output::outcome::{CommandOutput, ListCursors, Warning};
use crate::output::values::UtcTime;
use crate::spec::paging::{cursor_position, position_cursor};
use crate::spec::{Category, CommandSpec, Danger, Shape, Toolset};

/// Filters shared by the local and the cloud command.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct StatusInputs {
    /// Only this task
    #[schemars(extend("x-positional" = true))]
    pub task_id: Option<TaskRef>,
    /// Only tasks in or below this directory
    #[schemars(length(min = 1, max = 4096))]
    pub working_dir: Option<PathBuf>,
    /// Only tasks with these labels
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub labels: BTreeMap<String, String>,
    /// Only this state
    #[serde(default)]
    #[schemars(schema_with = "inputs::states")]
    pub state: Option<State>,
    /// Maximum number of finished tasks; above 50 also of others
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: u32,
    /// Last 5 lines of running tasks
    #[serde(default)]
    pub verbose: bool,
    /// Cursor of the previous page
    #[schemars(length(min = 1, max = 512))]
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Status {
    #[serde(flatten)]
    pub filter: StatusInputs,
    /// Tokens and time per task, label and day
    #[serde(default)]
    pub usage: bool,
}

fn five() -> u32 {
    5
}

pub const SPEC: CommandSpec = CommandSpec {
    category: Category::StatusSnapshot,
    shape: Shape::Show("snapshot"),
    danger: Danger::Safe,
    idempotent: true,
    toolset: Toolset::Local,
    failures: &[ErrorCode::TaskNotFound, ErrorCode::InvalidId, ErrorCode::InvalidCursor],
    ..CommandSpec::new::<Status, StatusSnapshot>(
        &["local", "status"],
        "Show running, queued and recent tasks",
    )
};

pub const COMMAND: Command = Command {
    describe: crate::output::documents::status::snapshot,
    prepare: Some(|input| prepare(input, run)),
    ..Command::new(&SPEC)
};

/// Maximum number of running and queued tasks in the list, unless `limit` is higher. Clients poll status every second,
/// so it must stay fast.
const MIN_LISTED: u32 = 50;
/// Enough for five lines of the displayed length, and for most longer ones.
const VERBOSE_BYTES: u64 = 64 << 10;
/// How long an ended task is recent.
const RECENT_MS: i64 = 24 * 60 * 60 * 1000;

fn run(context: &Context<'_>, input: Status) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let now_ms = Timestamp::now().as_millisecond();
    let wanted = overview_query(context, &engine, &input.filter, now_ms)?;
    let Some(overview) = engine.overview(&wanted)? else {
        return Ok(snapshot_output(now_ms, StatusSnapshot::default()));
    };
    let not_listed = NotListed {
        running: overview.running_count.saturating_sub(overview.running.len() as u64),
        queued: overview.queued_count.saturating_sub(overview.queued.len() as u64),
    };
    let mut tasks = Vec::new();
    for running in overview.running {
        let id = running.task.id.clone();
        let mut task = RunningTask::of(running.task, running.snapshot.as_ref(), now_ms);
        if input.filter.verbose {
            let stored = engine.read_stored_tail(&id, TaskFile::Events, VERBOSE_BYTES)?;
            task.last_lines = Some(last_lines(&stored));
        }
        tasks.push(task);
    }
    let usage = match input.usage {
        true => Some(engine.usage(&wanted, input.filter.limit.max(MIN_LISTED))?.unwrap_or_default().into()),
        false => None,
    };
    let unread = overview.unread;
    let snapshot = StatusSnapshot {
        summary: StatusCounts {
            running: overview.running_count,
            queued: overview.queued_count,
            recently_completed: overview.ended.total,
        },
        tasks,
        queue: overview.queued.into_iter().map(Into::into).collect(),
        recently_completed: overview.ended.tasks.iter().map(Into::into).collect(),
        not_listed: (not_listed.running + not_listed.queued > 0).then_some(not_listed),
        usage,
        queue_paused: overview.queue_paused,
        unread: (unread.count > 0).then(|| Unread {
            count: unread.count,
            task_ids: unread.ids.iter().map(ToString::to_string).collect(),
        }),
    };
    let mut output = snapshot_output(now_ms, snapshot);
    if let Some(log) = overview.long_log {
        output.warnings.push(Warning::new("W_REGISTRY_001", long_log_message(log)));
    }
    let query = cursor_query(&input.filter);
    output.next_cursor = overview.ended.next.map(|next| position_cursor(next, &query));
    let positions = overview.ended.tasks.iter().filter_map(|task| Some(task.ended.as_ref()?.order));
    let cursors = positions.map(|position| position_cursor(position, &query)).collect();
    output.list_cursors = Some(ListCursors { list: "recently_completed", cursors });
    Ok(output)
}

/// Explains why the registry grows, and what to do.
pub fn long_log_message(log: LongLog) -> String {
    let size = log.bytes >> 20;
    format!(
        "the registry's write-ahead log has grown to {size} MiB because a program keeps the database open for reading; end that program"
    )
}

fn overview_query(
    context: &Context<'_>,
    engine: &Engine,
    inputs: &StatusInputs,
    now_ms: i64,
) -> Result<OverviewRequest, AppError> {
    let states = inputs.state.map(State::with_same_public_name).unwrap_or_default();
    Ok(OverviewRequest {
        filter: Filter {
            states,
            working_dir: inputs.working_dir.as_deref().map(|dir| absolute_dir(context, dir)),
            labels: inputs.labels.clone(),
            since_ms: None,
        },
        only: inputs.task_id.as_ref().map(|given| resolve_task(engine, given)).transpose()?,
        under: context.process.current_dir.display().to_string(),
        unfinished_limit: inputs.limit.max(MIN_LISTED),
        ended_since_ms: now_ms - RECENT_MS,
        ended_limit: inputs.limit,
        ended_before: inputs
            .cursor
            .as_deref()
            .map(|cursor| cursor_position(cursor, &cursor_query(inputs)))
            .transpose()?,
    })
}

/// The query that a cursor belongs to: all filters, without cursor and limit.
fn cursor_query(inputs: &StatusInputs) -> Value {
    json!(["status", inputs.task_id, inputs.working_dir, inputs.labels, inputs.state])
}

/// The directory as stored with tasks: absolute, with symbolic links resolved if it exists.
pub fn absolute_dir(context: &Context<'_>, given: &Path) -> String {
    let path = context.process.current_dir.join(given);
    path.canonicalize().unwrap_or(path).display().to_string()
}

fn snapshot_output(now_ms: i64, snapshot: StatusSnapshot) -> CommandOutput {
    let total = snapshot.summary.running + snapshot.summary.queued;
    let facts = StatusFacts { snapshot_ts: UtcTime::from_ms(now_ms), total };
    CommandOutput::done(snapshot).with_facts(facts)
}

fn last_lines(stored: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stored);
    let lines: Vec<&str> = text.lines().collect();
    let shortened = |line: &&str| line.chars().take(400).collect();
    lines[lines.len().saturating_sub(5)..].iter().map(shortened).collect()
}
