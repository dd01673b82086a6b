//! What an answer says beside its data (`meta` of the envelopes), for a reader: only what can be acted on.

use serde_json::{Value, json};

use super::document::{Block, Document, scalar};
use super::{estimate, task_document};
use crate::outcome::CommandOutput;

/// The document with these facts among its own.
pub fn append_to(document: Document, answer: &CommandOutput) -> Document {
    let mut document = document.with_facts(facts(answer));
    let input = match pending(answer).as_slice() {
        [] => return document,
        [one] => json!({"task_id": one}),
        several if describes_one_task(answer) => json!({"task_ids": several, "until": "any"}),
        several => json!({"task_ids": several}),
    };
    // Those that are missing are what comes next, whatever else could be asked.
    document.blocks.retain(|block| !matches!(block, Block::Next { .. }));
    document.block(Block::Next { path: &["local", "wait"], input })
}

/// Whoever waits for any is told of one, and whoever waits for all of all.
fn describes_one_task(answer: &CommandOutput) -> bool {
    let (data, _) = answer.completion.parts();
    data.is_some_and(|data| data.get("tasks").is_none())
}

fn pending(answer: &CommandOutput) -> Vec<&Value> {
    answer.facts.get("pending").and_then(Value::as_array).into_iter().flatten().collect()
}

fn facts(answer: &CommandOutput) -> Vec<(String, String)> {
    let fact = |key: &str| answer.facts.get(key);
    let is_true = |key: &str| fact(key) == Some(&Value::Bool(true));
    let place = fact("queue_position").and_then(Value::as_u64).filter(|place| *place > 0);
    let failed_with = answer.child.as_ref().and_then(|child| child.code).filter(|code| *code != 0);
    let pending: Vec<String> = pending(answer).into_iter().map(scalar).collect();
    let told = [
        ("exit code", failed_with.map(|code| code.to_string())),
        ("place in the queue", place.map(|place| place.to_string())),
        ("waits for", fact("waiting_for").and_then(task_document::format_waiting_for)),
        (
            "starts in",
            fact("estimated_start_ms")
                .and_then(Value::as_u64)
                .filter(|ms| *ms > 0)
                .map(estimate::format_duration),
        ),
        ("queue", is_true("queue_paused").then(|| "paused".to_owned())),
        ("replayed", is_true("replayed").then(|| "yes, this is the first task of its key".to_owned())),
        ("pending", (!pending.is_empty()).then(|| pending.join(", "))),
        ("more", fact("next_cursor").map(|cursor| format!("cursor {}", scalar(cursor)))),
    ];
    told.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
