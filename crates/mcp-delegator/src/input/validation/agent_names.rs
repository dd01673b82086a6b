//! Checks inputs that are one name or a list of names: their schema has no type.

use serde_json::Value;

use crate::error::{ErrorCode, Problem};
use crate::spec::{InputSchema, Marker};

const MAX_AGENTS: usize = 4;

pub(super) fn name_problems(inputs: &InputSchema, input: &Value) -> Vec<Problem> {
    let names = inputs.properties.iter().filter(|property| property.has(&Marker::Names));
    let problem =
        |name: &String| Some(Problem::new(ErrorCode::InvalidValue, name, names_problem(input.get(name)?)?));
    names.filter_map(|property| problem(&property.name)).collect()
}

pub(super) fn names_problem(value: &Value) -> Option<&'static str> {
    let items = match value {
        Value::String(_) => return None,
        Value::Array(items) if items.iter().all(Value::is_string) => items,
        _ => return Some("must be a name or a list of names"),
    };
    let is_repeated = |(at, name): (usize, &Value)| items[..at].contains(name);
    match items.len() {
        0 => Some("must not be an empty list"),
        count if count > MAX_AGENTS => Some("names too many agents; at most 4 are allowed"),
        _ if items.iter().enumerate().any(is_repeated) => Some("names an agent twice"),
        _ => None,
    }
}
