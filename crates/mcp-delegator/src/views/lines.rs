//! `--format jsonl`: a line for each item, then one terminal line in the agent form that tells how it ended.

use serde_json::{Value, json};

use crate::outcome::{Completion, Outcome};
use crate::registry::Shape;
use crate::views::agent;

pub fn render(outcome: &Outcome, stream: bool) -> Vec<Value> {
    let items = match outcome.answer.shape.unwrap_or(outcome.command.shape) {
        Shape::List(plural) if stream => {
            outcome.data().and_then(|data| data.get(plural)).and_then(Value::as_array)
        }
        _ => None,
    };
    let Some(items) = items else { return vec![agent::render(outcome)] };
    let mut ending = outcome.clone();
    ending.answer.completion = Completion::Done(json!({"count": items.len()}));
    let mut lines = items.clone();
    lines.push(agent::render(&ending));
    lines
}
