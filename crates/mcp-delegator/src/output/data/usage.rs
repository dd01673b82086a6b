//! The usage table: tokens and time per task, label and day.

use delegator_engine::WorktreeSize;
use delegator_registry::{Cost, UsageTable};

use crate::output::prelude::*;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Usage {
    pub total: UsageSums,
    pub per_task: Vec<TaskUsage>,
    pub per_label: Vec<LabelUsage>,
    pub per_day: Vec<DayUsage>,
    /// The disk space of the worktrees of isolated tasks.
    pub worktrees: WorktreeUsage,
}

#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct WorktreeUsage {
    pub count: usize,
    pub total_bytes: u64,
    /// The oldest first.
    pub per_worktree: Vec<WorktreeBytes>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
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

    fn append_to(&self, document: Document) -> Document {
        if self.per_worktree.is_empty() {
            return document;
        }
        let row = |worktree: &WorktreeBytes| {
            vec![worktree.task_id.clone(), worktree.size_bytes.to_string(), worktree.path.clone()]
        };
        document
            .text(format!("Worktrees: {}, {} bytes", self.count, self.total_bytes))
            .table(&["worktree of", "bytes", "directory"], self.per_worktree.iter().map(row).collect())
    }
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
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

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskUsage {
    pub task_id: String,
    #[serde(flatten)]
    pub sums: UsageSums,
    pub title: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LabelUsage {
    /// `key=value`
    pub label: String,
    #[serde(flatten)]
    pub sums: UsageSums,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
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

    pub fn append_to(&self, document: Document) -> Document {
        let UsageSums { duration_seconds, input_tokens, cached_input_tokens, output_tokens, .. } = self.total;
        let total = format!(
            "Ended tasks in the registry: {}, {duration_seconds} s, {input_tokens} input tokens \
             ({cached_input_tokens} cached), {output_tokens} output tokens",
            cell(self.total.task_count.as_ref()),
        );
        let days = self.per_day.iter().map(|usage| usage.sums.cells(&usage.day));
        let labels = self.per_label.iter().map(|usage| usage.sums.cells(&usage.label));
        let tasks = self.per_task.iter().map(|usage| usage.sums.cells(&usage.task_id));
        let document = document
            .text(total)
            .with(self.total.tasks_without_tokens_count, |document, count| {
                document.text(format!("The agents of {count} of these tasks reported no tokens."))
            })
            .with(self.total.cost_usd, |document, cost| {
                document.text(format!("Cost, where agents report it: {} US dollars", json!(cost)))
            })
            .table(&columns("day (UTC)"), days.collect())
            .table(&columns("label"), labels.collect())
            .table(&columns("task"), tasks.collect());
        self.worktrees.append_to(document)
    }
}

/// The columns of [`UsageSums::cells`]. A table of tasks has no number of tasks.
fn columns(first: &'static str) -> [&'static str; 6] {
    [first, "tasks", "seconds", "input", "cached", "output"]
}

impl UsageSums {
    fn cells(&self, name: &str) -> Vec<String> {
        let counts = [self.duration_seconds, self.input_tokens, self.cached_input_tokens, self.output_tokens];
        let names = [name.to_owned(), cell(self.task_count.as_ref())];
        names.into_iter().chain(counts.map(|count| count.to_string())).collect()
    }
}
