//! One spelling out of the many an input may come in.
//!
//! Mixed spelling is the best-known cause of failed agent calls in this field, so camelCase, and rarely needed inputs
//! inside or outside of `options`, are all accepted; two spellings of one input are not.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{OPTIONS, synonyms};
use crate::error::{ErrorCode, Problem, truncate_text};
use crate::spec::{InputSchema, PropertyType};

/// Takes `options` apart and folds camelCase into the names of the schema.
pub(super) fn normalize_names(
    inputs: &InputSchema,
    mut object: Map<String, Value>,
    problems: &mut Vec<Problem>,
) -> Map<String, Value> {
    let nested = match object.shift_remove(OPTIONS) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(nested)) => nested,
        Some(_) => {
            problems.push(Problem::new(ErrorCode::InvalidValue, OPTIONS, "must be an object"));
            Map::new()
        }
    };
    let top_level = object.into_iter().map(|(key, value)| (key.clone(), key, value));
    let in_options = nested.into_iter().map(|(key, value)| (format!("{OPTIONS}.{key}"), key, value));
    let mut normalized: Map<String, Value> = Map::new();
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    for (place, key, value) in top_level.chain(in_options) {
        // An input that is explicitly nothing is an input that was not given.
        if value.is_null() {
            continue;
        }
        let name = snake_case(&key);
        if inputs.get(&name).is_none() {
            problems.push(unknown_input(inputs, &key, &name));
        } else if let Some(first) = sources.get(&name) {
            problems.push(duplicate_input(&name, first, &place));
        } else {
            normalized.insert(name.clone(), to_integer(inputs, &name, value));
            sources.insert(name, place);
        }
    }
    normalized
}

/// An input that came in two places or spellings.
pub fn duplicate_input(name: &str, first: &str, second: &str) -> Problem {
    Problem::new(ErrorCode::InvalidValue, name, format!("is given twice, as {first} and as {second}"))
        .suggest(Some(format!("Give {name} once.")))
}

/// `5.0` is a whole number to JSON, and some writers know no other.
fn to_integer(inputs: &InputSchema, name: &str, value: Value) -> Value {
    let is_integer = inputs.get(name).is_some_and(|property| property.kind == PropertyType::Integer);
    match value.as_f64() {
        Some(number) if is_integer && number.fract() == 0.0 && number.abs() < 9e15 => (number as i64).into(),
        _ => value,
    }
}

fn unknown_input(inputs: &InputSchema, key: &str, name: &str) -> Problem {
    let suggestion = match synonyms::intended_input(name, inputs) {
        Some(meant) => format!("Did you mean {meant}?"),
        None => format!("Leave it out. Its inputs are {}.", synonyms::common_inputs(inputs)),
    };
    Problem::new(ErrorCode::UnknownFlag, truncate_text(key), "is not an input of this command")
        .suggest(Some(suggestion))
}

pub fn snake_case(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + 4);
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            if !name.is_empty() {
                name.push('_');
            }
            name.push(letter.to_ascii_lowercase());
        } else {
            name.push(if letter == '-' { '_' } else { letter });
        }
    }
    name
}
