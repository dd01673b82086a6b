//! What tasks cost: tokens and time, per task, per label, per day.

use delegator_registry::{Cost, UsageTable};
use serde_json::{Map, Value, json};

use super::document::{Block, scalar};

/// The sums every line of the table has, by their names in contract 000 where it has one.
fn costs(cost: &Cost) -> Map<String, Value> {
    let mut told = Map::new();
    told.insert("tasks".into(), cost.tasks.into());
    told.insert("duration_seconds".into(), (cost.ran_ms / 1000).into());
    told.insert("input_tokens".into(), cost.tokens.input.into());
    told.insert("cached_input_tokens".into(), cost.tokens.cached_input.into());
    told.insert("output_tokens".into(), cost.tokens.output.into());
    told.insert("reasoning_output_tokens".into(), cost.tokens.reasoning_output.into());
    // Without it, "0 tokens" could mean that nothing was used or that nobody said.
    if cost.without_tokens > 0 {
        told.insert("tasks_without_tokens".into(), cost.without_tokens.into());
    }
    told
}

fn group_row(key: &str, name: &str, cost: &Cost) -> Value {
    let mut told = Map::new();
    told.insert(key.into(), name.into());
    told.extend(costs(cost));
    Value::Object(told)
}

pub fn table(usage: &UsageTable) -> Value {
    let task = |one: &delegator_registry::TaskCost| {
        let mut told = group_row("task_id", one.id.as_str(), &one.cost);
        if let Some(object) = told.as_object_mut() {
            object.shift_remove("tasks");
        }
        told["title"] = one.title.clone().into();
        told
    };
    json!({
        "total": costs(&usage.total),
        "per_task": usage.tasks.iter().map(task).collect::<Vec<_>>(),
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

/// The same as tables; empty groups are left out.
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
    if let Some(untold) = total.get("tasks_without_tokens") {
        blocks.push(Block::Text(format!("Of {} of them the agent told no tokens.", scalar(untold))));
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
        let row = |line: &&Value| {
            std::iter::once(scalar(&line[key])).chain(names.iter().map(|name| scalar(&line[*name]))).collect()
        };
        blocks.push(Block::Table { columns, rows: lines.iter().map(row).collect() });
    }
    blocks
}
