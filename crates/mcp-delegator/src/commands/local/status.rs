//! `local status`: what runs, what waits, what ended lately.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use delegator_domain::task::State;
use delegator_engine::{Engine, LongLog, Wanted};
use delegator_registry::{Filter, TaskFile};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::tasks::{engine, resolved};
use crate::commands::inputs::TASK_ID;
use crate::fault::{AppError, ErrorCode};
use crate::outcome::{Answer, Trail, Warning};
use crate::registry::{Category, CommandSpec, Danger, Shape, Toolset, typed};
use crate::requests::page::{place_cursor, place_of};
use crate::run::Context;
use crate::views::{task as view, usage};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    Queued,
    Working,
    Completed,
    Failed,
    Cancelled,
    Timeout,
}

/// Which tasks to show: shared by the local and the cloud command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusInputs {
    /// Only this task
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TASK_ID), extend("x-positional" = true))]
    pub task_id: Option<String>,
    /// Only tasks in or below this directory
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096), extend("x-advanced" = true))]
    pub working_dir: Option<String>,
    /// Only tasks with all of these labels
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-advanced" = true, "default" = null))]
    pub labels: BTreeMap<String, String>,
    /// Only this state
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// How many finished tasks to list; above 50 also of the others
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000), extend("x-advanced" = true))]
    pub limit: u32,
    /// Last 5 lines of running tasks
    #[serde(default)]
    pub verbose: bool,
    /// Where to go on, from an earlier answer
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), extend("x-advanced" = true))]
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    #[serde(flatten)]
    pub of: StatusInputs,
    /// Tokens and time per task, label and day
    #[serde(default)]
    #[schemars(extend("x-advanced" = true))]
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
    describe: crate::views::status_document::snapshot,
    run: Some(|context, input| typed(context, input, run)),
    ..CommandSpec::declare::<Status>(&["local", "status"], "Show running, queued and recent tasks")
};

/// How many running and queued tasks are listed, unless more ended ones are asked for. Nobody reads more, and a host
/// that asks every second wants its answer at once.
const LISTED: u32 = 50;
/// Enough for five lines as long as they are shown, and for most that are longer.
const VERBOSE_BYTES: u64 = 64 << 10;
/// How long an ended task counts as recent.
const RECENT_MS: i64 = 24 * 60 * 60 * 1000;

fn run(context: &Context<'_>, input: Status) -> Result<Answer, AppError> {
    let engine = engine(context)?;
    let now_ms = Timestamp::now().as_millisecond();
    let wanted = wanted(context, &engine, &input.of, now_ms)?;
    let Some(seen) = engine.overview(&wanted)? else { return Ok(nothing(now_ms)) };
    let mut tasks = Vec::new();
    for running in &seen.running {
        let mut told = view::running(&running.task, running.snapshot.as_ref(), now_ms);
        if input.of.verbose {
            let stored = engine.stored_tail(&running.task.id, TaskFile::Events, VERBOSE_BYTES)?;
            told["last_lines"] = last_lines(&stored).into();
        }
        tasks.push(told);
    }
    let mut data = json!({
        "summary": {
            "running": seen.running_count,
            "queued": seen.queued_count,
            "recently_completed": seen.ended.total,
        },
    });
    data["tasks"] = Value::Array(tasks);
    data["queue"] = seen.queued.iter().map(view::queued).collect();
    data["recently_completed"] = seen.ended.tasks.iter().map(view::ended).collect();
    let not_listed = [
        ("running", seen.running_count.saturating_sub(seen.running.len() as u64)),
        ("queued", seen.queued_count.saturating_sub(seen.queued.len() as u64)),
    ];
    if not_listed.iter().any(|(_, count)| *count > 0) {
        data["not_listed"] =
            not_listed.into_iter().map(|(name, count)| (name.to_owned(), Value::from(count))).collect();
    }
    if input.usage {
        let asked = engine.usage(&wanted, input.of.limit.max(LISTED))?;
        data["usage"] = usage::table(&asked.unwrap_or_default());
    }
    if seen.queue_paused {
        data["queue_paused"] = true.into();
    }
    if seen.unread.count > 0 {
        let ids: Vec<&str> = seen.unread.ids.iter().map(|id| id.as_str()).collect();
        data["unread"] = json!({"count": seen.unread.count, "task_ids": ids});
    }
    let mut answer = snapshot(now_ms, data, seen.running_count + seen.queued_count);
    if let Some(long) = seen.long_log {
        answer.warnings.push(Warning::new("W_REGISTRY_001", long_log_words(long)));
    }
    let question = question(&input.of);
    if let Some(next) = seen.ended.next {
        answer.facts.insert("next_cursor".into(), place_cursor(next, &question).into());
    }
    let places = seen.ended.tasks.iter().filter_map(|task| Some(task.ended.as_ref()?.order)).collect();
    answer.trail = Some(Trail { list: "recently_completed", places, question });
    Ok(answer)
}

/// Why the registry takes more and more space, and what helps.
pub fn long_log_words(log: LongLog) -> String {
    let size = log.bytes >> 20;
    format!(
        "the registry's log has grown to {size} MiB; somebody has been reading it for long: end that program"
    )
}

fn wanted(
    context: &Context<'_>,
    engine: &Engine,
    of: &StatusInputs,
    now_ms: i64,
) -> Result<Wanted, AppError> {
    let states = match of.state {
        None => Vec::new(),
        Some(TaskState::Queued) => vec![State::Queued],
        Some(TaskState::Working) => vec![State::Starting, State::Working],
        Some(TaskState::Completed) => vec![State::Completed],
        Some(TaskState::Failed) => vec![State::Failed],
        Some(TaskState::Cancelled) => vec![State::Cancelled],
        Some(TaskState::Timeout) => vec![State::Timeout],
    };
    Ok(Wanted {
        filter: Filter {
            states,
            working_dir: of.working_dir.as_deref().map(|dir| real_dir(context, dir)),
            labels: of.labels.clone(),
            since_ms: None,
        },
        only: of.task_id.as_deref().map(|given| resolved(engine, given)).transpose()?,
        under: context.process.current_dir.display().to_string(),
        living_limit: of.limit.max(LISTED),
        ended_since_ms: now_ms - RECENT_MS,
        ended_limit: of.limit,
        ended_before: of.cursor.as_deref().map(|cursor| place_of(cursor, &question(of))).transpose()?,
    })
}

/// What a cursor belongs to: everything that was asked, but for the cursor itself and how many at once.
fn question(of: &StatusInputs) -> Value {
    json!(["status", of.task_id, of.working_dir, of.labels, of.state])
}

/// The directory as tasks know it: from the root, and by its real name where it exists.
pub fn real_dir(context: &Context<'_>, given: &str) -> String {
    let path = context.process.current_dir.join(given);
    path.canonicalize().unwrap_or(path).display().to_string()
}

fn nothing(now_ms: i64) -> Answer {
    let none = json!({
        "summary": {"running": 0, "queued": 0, "recently_completed": 0},
        "tasks": [], "queue": [], "recently_completed": [],
    });
    snapshot(now_ms, none, 0)
}

fn snapshot(now_ms: i64, data: Value, total: u64) -> Answer {
    Answer::done(data).fact("snapshot_ts", view::at(now_ms)).fact("total", total)
}

fn last_lines(stored: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stored);
    let lines: Vec<&str> = text.lines().collect();
    let shortened = |line: &&str| line.chars().take(400).collect();
    lines[lines.len().saturating_sub(5)..].iter().map(shortened).collect()
}
