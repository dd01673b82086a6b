//! `--format jsonl`: one line per item, then a last line with the CLI envelope.

use serde_json::{Value, json};

use crate::output::envelopes::cli as cli_envelope;
use crate::output::outcome::{Completion, Outcome};
use crate::spec::Shape;

pub fn render(outcome: &Outcome, stream: bool) -> Vec<Value> {
    let items = match outcome.output.shape.unwrap_or(outcome.command.shape) {
        Shape::List(plural) if stream => {
            outcome.data().and_then(|data| data.get(plural)).and_then(Value::as_array)
        }
        _ => None,
    };
    let Some(items) = items else { return vec![cli_envelope::render(outcome)] };
    let mut ending = outcome.clone();
    ending.output.completion = Completion::Done(json!({"count": items.len()}));
    let mut lines = items.clone();
    lines.push(cli_envelope::render(&ending));
    lines
}
