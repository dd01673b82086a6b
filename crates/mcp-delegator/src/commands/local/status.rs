//! `local status`: what runs, what waits, what ended lately.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::path::Path;

use delegator_domain::task::TaskId;
use delegator_registry::{Task, TaskFile};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::tasks::{engine, resolved};
use crate::commands::inputs::TASK_ID;
use crate::fault::{AppError, ErrorCode};
use crate::outcome::Answer;
use crate::registry::{Category, CommandSpec, Danger, Shape, Toolset, typed};
use crate::run::Context;
use crate::views::document::{Block, Document, scalar};
use crate::views::task as view;

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
    /// Only tasks in this state
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// How many finished tasks to list
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000), extend("x-advanced" = true))]
    pub limit: u32,
    /// Add the last 5 lines of running tasks
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
    #[schemars(extend("x-advanced" = true, "x-unbuilt" = true))]
    pub usage: bool,
}

fn five() -> u32 {
    5
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Never waits.",
    category: Category::StatusSnapshot,
    shape: Shape::Show("snapshot"),
    danger: Danger::Safe,
    idempotent: true,
    toolset: Toolset::Local,
    failures: &[ErrorCode::TaskNotFound, ErrorCode::InvalidId, ErrorCode::InvalidCursor],
    describe,
    run: Some(|context, input| typed(context, input, run)),
    ..CommandSpec::declare::<Status>(&["local", "status"], "Show running, queued and recent tasks")
};

/// How long an ended task counts as recent.
const RECENT_MS: i64 = 24 * 60 * 60 * 1000;

fn run(context: &Context<'_>, input: Status) -> Result<Answer, AppError> {
    let engine = engine(context)?;
    let now_ms = Timestamp::now().as_millisecond();
    let only = match &input.of.task_id {
        Some(given) => Some(resolved(&engine, given)?),
        None => None,
    };
    let here = context.process.current_dir.display().to_string();
    let keep = |task: &Task| is_wanted(task, &input.of, only.as_ref());
    let seen = engine.overview(keep, &here, now_ms - RECENT_MS, input.of.limit)?;
    let Some(seen) = seen else {
        return Ok(snapshot(
            now_ms,
            json!({
                "summary": {"running": 0, "queued": 0, "recently_completed": 0},
                "tasks": [], "queue": [], "recently_completed": [],
            }),
            0,
        ));
    };
    let mut tasks = Vec::new();
    for task in &seen.running {
        let files = engine.files(&task.id)?;
        let mut told = view::running(task, files.snapshot.as_ref(), now_ms);
        if input.of.verbose {
            told["last_lines"] = last_lines(&engine.stored(&task.id, TaskFile::Events)?).into();
        }
        tasks.push(told);
    }
    let queue: Vec<Value> = seen
        .queued
        .iter()
        .enumerate()
        .map(|(position, task)| json!({"task_id": task.id.as_str(), "position": position, "title": task.title}))
        .collect();
    let (running, queued) = (seen.running.len(), seen.queued.len());
    let mut data = json!({
        "summary": {"running": running, "queued": queued, "recently_completed": seen.recent_count},
        "tasks": tasks,
        "queue": queue,
        "recently_completed": seen.recent.iter().map(view::ended).collect::<Vec<_>>(),
    });
    if seen.unread.count > 0 {
        let ids: Vec<&str> = seen.unread.ids.iter().map(|id| id.as_str()).collect();
        data["unread"] = json!({"count": seen.unread.count, "task_ids": ids});
    }
    Ok(snapshot(now_ms, data, running + queued))
}

fn snapshot(now_ms: i64, data: Value, total: usize) -> Answer {
    Answer::done(data).fact("snapshot_ts", view::at(now_ms)).fact("total", total)
}

fn is_wanted(task: &Task, of: &StatusInputs, only: Option<&TaskId>) -> bool {
    let state = of.state.map(|state| json!(state));
    only.is_none_or(|only| *only == task.id)
        && of.working_dir.as_ref().is_none_or(|dir| Path::new(&task.working_dir).starts_with(dir))
        && of.labels.iter().all(|(name, value)| task.labels.get(name) == Some(value))
        && state.is_none_or(|state| state == task.state.shown())
}

fn last_lines(stored: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stored);
    let lines: Vec<&str> = text.lines().collect();
    let shortened = |line: &&str| line.chars().take(400).collect();
    lines[lines.len().saturating_sub(5)..].iter().map(shortened).collect()
}

fn describe(data: &Value) -> Document {
    let rows = |key: &str, columns: &[&str]| -> Vec<Vec<String>> {
        let items = data[key].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .map(|item| {
                columns.iter().map(|path| scalar(item.pointer(path).unwrap_or(&Value::Null))).collect()
            })
            .collect()
    };
    let count = |key: &str| data["summary"][key].as_u64().unwrap_or(0);
    let line = format!(
        "{} running, {} queued, {} ended in the last 24 hours",
        count("running"),
        count("queued"),
        count("recently_completed")
    );
    let mut document = Document::default().block(Block::Text(line));
    let running = rows(
        "tasks",
        &["/task_id", "/elapsed_seconds", "/progress/percent", "/progress/current_activity", "/title"],
    );
    if !running.is_empty() {
        let columns = vec!["running", "seconds", "%", "activity", "task"];
        document = document.block(Block::Table { columns, rows: running });
    }
    let queued = rows("queue", &["/task_id", "/position", "/title"]);
    if !queued.is_empty() {
        document = document.block(Block::Table { columns: vec!["queued", "place", "task"], rows: queued });
    }
    let recent = rows("recently_completed", &["/task_id", "/state", "/duration_seconds", "/title"]);
    if !recent.is_empty() {
        let columns = vec!["ended", "state", "seconds", "task"];
        document = document.block(Block::Table { columns, rows: recent });
    }
    document
}
