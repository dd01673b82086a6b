//! `--format jsonl`: one line per item, then a last line with the CLI envelope.

use serde_json::{Value, json};

use crate::output::envelopes::cli::{self as cli_envelope, StreamEnd};
use crate::output::outcome::{Completion, Outcome};
use crate::spec::Shape;

/// The items and the last line.
pub fn render(outcome: &Outcome, stream: bool) -> (Vec<Value>, Value) {
    let items = match outcome.output.shape.unwrap_or(outcome.command.shape) {
        Shape::List(plural) if stream => {
            outcome.data().and_then(|data| data.get(plural)).and_then(Value::as_array)
        }
        _ => None,
    };
    let Some(items) = items else { return (Vec::new(), cli_envelope::render(outcome)) };
    let mut ending = outcome.clone();
    ending.output.completion = Completion::Done(json!(StreamEnd { count: items.len() }));
    (items.clone(), cli_envelope::render(&ending))
}
