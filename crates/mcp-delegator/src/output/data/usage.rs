//! The usage table: tokens and time per task, label and day.

use delegator_registry::{Cost, UsageTable};
use serde_json::{Map, Value, json};

use crate::output::documents::document::{Block, scalar};

/// The sums of one row, with the key names of the tool envelope.
fn costs(cost: &Cost) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("tasks".into(), cost.tasks.into());
    row.insert("duration_seconds".into(), (cost.ran_ms / 1000).into());
    row.insert("input_tokens".into(), cost.tokens.input.into());
    row.insert("cached_input_tokens".into(), cost.tokens.cached_input.into());
    row.insert("output_tokens".into(), cost.tokens.output.into());
    row.insert("reasoning_output_tokens".into(), cost.tokens.reasoning_output.into());
    // Without this count, "0 tokens" could also mean that the agent did not report its usage.
    if cost.without_tokens > 0 {
        row.insert("tasks_without_tokens".into(), cost.without_tokens.into());
    }
    row
}

fn group_row(key: &str, name: &str, cost: &Cost) -> Value {
    let mut row = Map::new();
    row.insert(key.into(), name.into());
    row.extend(costs(cost));
    Value::Object(row)
}

pub fn table(usage: &UsageTable) -> Value {
    let task_row = |task: &delegator_registry::TaskCost| {
        let mut row = group_row("task_id", task.id.as_str(), &task.cost);
        if let Some(object) = row.as_object_mut() {
            object.shift_remove("tasks");
        }
        row["title"] = task.title.clone().into();
        row
    };
    json!({
        "total": costs(&usage.total),
        "per_task": usage.tasks.iter().map(task_row).collect::<Vec<_>>(),
        "per_label": usage.labels.iter().map(|(label, cost)| group_row("label", label, cost)).collect::<Vec<_>>(),
        "per_day": usage.days.iter().map(|(day, cost)| group_row("day", day, cost)).collect::<Vec<_>>(),
    })
}

const COLUMNS: [(&str, &str); 5] = [
    ("tasks", "tasks"),
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
        scalar(&total["tasks"]),
        scalar(&total["duration_seconds"]),
        scalar(&total["input_tokens"]),
        scalar(&total["cached_input_tokens"]),
        scalar(&total["output_tokens"]),
    );
    let mut blocks = vec![Block::Text(line)];
    if let Some(without_tokens) = total.get("tasks_without_tokens") {
        blocks.push(Block::Text(format!(
            "The agents of {} of these tasks reported no tokens.",
            scalar(without_tokens)
        )));
    }
    for (group, key, column) in
        [("per_day", "day", "day (UTC)"), ("per_label", "label", "label"), ("per_task", "task_id", "task")]
    {
        let lines: Vec<&Value> = usage[group].as_array().into_iter().flatten().collect();
        if lines.is_empty() {
            continue;
        }
        let counted = COLUMNS.iter().filter(|(_, name)| group != "per_task" || *name != "tasks");
        let (mut columns, names): (Vec<&'static str>, Vec<&str>) = counted.copied().unzip();
        columns.insert(0, column);
        let cells = |line: &&Value| {
            std::iter::once(scalar(&line[key])).chain(names.iter().map(|name| scalar(&line[*name]))).collect()
        };
        blocks.push(Block::Table { columns, rows: lines.iter().map(cells).collect() });
    }
    blocks
}
