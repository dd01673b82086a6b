//! The usage table: tokens and time per task, label and day.

use delegator_engine::WorktreeSize;
use delegator_registry::{Cost, UsageTable};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::output::documents::document::{Block, rows, scalar};

#[derive(Debug, Serialize, JsonSchema)]
pub struct Usage {
    pub total: UsageSums,
    pub per_task: Vec<TaskUsage>,
    pub per_label: Vec<LabelUsage>,
    pub per_day: Vec<DayUsage>,
    /// The disk space of the worktrees of isolated tasks.
    pub worktrees: WorktreeUsage,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct WorktreeUsage {
    pub count: usize,
    pub total_bytes: u64,
    /// The oldest first.
    pub per_worktree: Vec<WorktreeBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct WorktreeBytes {
    /// The task for which it was created.
    pub task_id: String,
    pub path: String,
    pub size_bytes: u64,
}

impl WorktreeUsage {
    pub fn of(sizes: &[WorktreeSize]) -> WorktreeUsage {
        let entry = |size: &WorktreeSize| WorktreeBytes {
            task_id: size.owner.to_string(),
            path: size.path.clone(),
            size_bytes: size.bytes,
        };
        WorktreeUsage {
            count: sizes.len(),
            total_bytes: sizes.iter().map(|size| size.bytes).sum(),
            per_worktree: sizes.iter().map(entry).collect(),
        }
    }
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
pub struct UsageSums {
    pub task_count: Option<u64>,
    pub duration_seconds: i64,
    pub input_tokens: i64,
    pub cached_input_tokens: i64,
    pub output_tokens: i64,
    pub reasoning_output_tokens: i64,
    /// In US dollars, of the agents that report it.
    pub cost_usd: Option<f64>,
    /// Without this count, "0 tokens" could also mean that the agent did not report its usage.
    pub tasks_without_tokens_count: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct TaskUsage {
    pub task_id: String,
    #[serde(flatten)]
    pub sums: UsageSums,
    pub title: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct LabelUsage {
    /// `key=value`
    pub label: String,
    #[serde(flatten)]
    pub sums: UsageSums,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct DayUsage {
    /// In UTC
    pub day: String,
    #[serde(flatten)]
    pub sums: UsageSums,
}

pub fn dollars(microdollars: u64) -> f64 {
    microdollars as f64 / 1e6
}

impl From<&Cost> for UsageSums {
    fn from(cost: &Cost) -> UsageSums {
        UsageSums {
            task_count: Some(cost.tasks),
            duration_seconds: cost.ran_ms / 1000,
            input_tokens: cost.tokens.input,
            cached_input_tokens: cost.tokens.cached_input,
            output_tokens: cost.tokens.output,
            reasoning_output_tokens: cost.tokens.reasoning_output,
            cost_usd: cost.microdollars.map(dollars),
            tasks_without_tokens_count: Some(cost.without_tokens).filter(|count| *count > 0),
        }
    }
}

impl Usage {
    pub fn of(table: UsageTable, worktrees: &[WorktreeSize]) -> Usage {
        let per_task = table.tasks.into_iter().map(|task| TaskUsage {
            task_id: task.id.to_string(),
            sums: UsageSums { task_count: None, ..(&task.cost).into() },
            title: task.title,
        });
        let per_label =
            table.labels.into_iter().map(|(label, cost)| LabelUsage { label, sums: (&cost).into() });
        let per_day = table.days.into_iter().map(|(day, cost)| DayUsage { day, sums: (&cost).into() });
        Usage {
            total: (&table.total).into(),
            per_task: per_task.collect(),
            per_label: per_label.collect(),
            per_day: per_day.collect(),
            worktrees: WorktreeUsage::of(worktrees),
        }
    }
}

const COLUMNS: [(&str, &str); 5] = [
    ("tasks", "task_count"),
    ("seconds", "duration_seconds"),
    ("input", "input_tokens"),
    ("cached", "cached_input_tokens"),
    ("output", "output_tokens"),
];

/// The usage as tables; empty groups are omitted.
pub fn blocks(usage: &Value) -> Vec<Block> {
    if usage.is_null() {
        return Vec::new();
    }
    let total = &usage["total"];
    let line = format!(
        "Ended tasks in the registry: {}, {} s, {} input tokens ({} cached), {} output tokens",
        scalar(&total["task_count"]),
        scalar(&total["duration_seconds"]),
        scalar(&total["input_tokens"]),
        scalar(&total["cached_input_tokens"]),
        scalar(&total["output_tokens"]),
    );
    let mut blocks = vec![Block::Text(line)];
    if let Some(without_tokens) = total.get("tasks_without_tokens_count") {
        blocks.push(Block::Text(format!(
            "The agents of {} of these tasks reported no tokens.",
            scalar(without_tokens)
        )));
    }
    if let Some(cost) = total.get("cost_usd") {
        blocks.push(Block::Text(format!("Cost, where agents report it: {} US dollars", scalar(cost))));
    }
    for (group, key, column) in
        [("per_day", "day", "day (UTC)"), ("per_label", "label", "label"), ("per_task", "task_id", "task")]
    {
        let lines: Vec<&Value> = usage[group].as_array().into_iter().flatten().collect();
        if lines.is_empty() {
            continue;
        }
        let counted = COLUMNS.iter().filter(|(_, name)| group != "per_task" || *name != "task_count");
        let (mut columns, names): (Vec<&'static str>, Vec<&str>) = counted.copied().unzip();
        columns.insert(0, column);
        let cells = |line: &&Value| {
            std::iter::once(scalar(&line[key])).chain(names.iter().map(|name| scalar(&line[*name]))).collect()
        };
        blocks.push(Block::Table { columns, rows: lines.iter().map(cells).collect() });
    }
    let worktrees = rows(&usage["worktrees"]["per_worktree"], &["task_id", "size_bytes", "path"]);
    if !worktrees.is_empty() {
        blocks.push(Block::Text(format!(
            "Worktrees: {}, {} bytes",
            scalar(&usage["worktrees"]["count"]),
            scalar(&usage["worktrees"]["total_bytes"])
        )));
        blocks.push(Block::Table { columns: vec!["worktree of", "bytes", "directory"], rows: worktrees });
    }
    blocks
}
