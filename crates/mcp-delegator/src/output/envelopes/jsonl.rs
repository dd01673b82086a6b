//! `--format jsonl`: one line per item, then a last line with the CLI envelope.

use serde_json::Value;

use crate::output::envelopes::cli::{self as cli_envelope, StreamEnd};
use crate::output::outcome::Outcome;
use crate::spec::Shape;

/// The items and the last line.
pub fn render(outcome: &Outcome, stream: bool) -> (Vec<Value>, Value) {
    let list = match outcome.output.shape.unwrap_or(outcome.command.shape) {
        Shape::List(plural) if stream => {
            outcome.data().and_then(|data| data.to_json().get_mut(plural).map(Value::take))
        }
        _ => None,
    };
    let Some(Value::Array(items)) = list else { return (Vec::new(), cli_envelope::render(outcome)) };
    let mut ending = outcome.clone();
    ending.output.data = Some(StreamEnd { count: items.len() }.into());
    (items, cli_envelope::render(&ending))
}
