//! Adds the facts of `meta` to a document, as far as a reader can act on them.

use crate::output::data::status::WaitingFor;
use crate::output::documents::document::scalar;
use crate::output::outcome::CommandOutput;
use crate::output::prelude::*;
use crate::output::values::format_duration;

pub fn append_to(document: Document, output: &CommandOutput) -> Document {
    let mut document = document.with_facts(facts(output));
    let wait = NextCall::new(&["local", "wait"]);
    let wait = match listed(output, "pending").as_slice() {
        [] => return document,
        [id] => wait.with("task_id", (*id).clone()),
        // Only a wait for any task lists those that have ended.
        several if output.facts.contains_key("ended") => {
            wait.with("task_ids", json!(several)).with("until", "any")
        }
        several => wait.with("task_ids", json!(several)),
    };
    // Waiting for the pending tasks replaces any other next call.
    document.blocks.retain(|block| !matches!(block, Block::Next(_)));
    document.block(Block::Next(wait))
}

fn listed<'a>(output: &'a CommandOutput, key: &str) -> Vec<&'a Value> {
    output.facts.get(key).and_then(Value::as_array).into_iter().flatten().collect()
}

fn facts(output: &CommandOutput) -> Vec<(String, String)> {
    let fact = |key: &str| output.facts.get(key);
    let is_true = |key: &str| fact(key) == Some(&Value::Bool(true));
    let position = fact("queue_position").and_then(Value::as_u64).filter(|position| *position > 0);
    let failed_with = output.child.as_ref().and_then(|child| child.code).filter(|code| *code != 0);
    let pending: Vec<String> = listed(output, "pending").into_iter().map(scalar).collect();
    let ended: Vec<String> = listed(output, "ended").into_iter().map(scalar).collect();
    let waiting_for = fact("waiting_for").and_then(|task| WaitingFor::deserialize(task).ok());
    known_facts([
        ("exit code", failed_with.map(|code| code.to_string())),
        ("queue position", position.map(|position| position.to_string())),
        ("waits for", waiting_for.map(|task| task.text())),
        (
            "starts in",
            fact("estimated_start_ms").and_then(Value::as_u64).filter(|ms| *ms > 0).map(format_duration),
        ),
        ("queue", is_true("is_queue_paused").then(|| "paused".to_owned())),
        (
            "replayed",
            is_true("replayed").then(|| "yes, this is the existing task with the same key".to_owned()),
        ),
        // One ended task is the one described.
        ("ended", (ended.len() > 1).then(|| ended.join(", "))),
        ("pending", (!pending.is_empty()).then(|| pending.join(", "))),
    ])
}
