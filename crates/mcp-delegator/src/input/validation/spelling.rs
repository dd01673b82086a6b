//! Normalizes the names of inputs.
//!
//! Models often mix spellings, so camelCase is accepted, and advanced inputs may stand inside or outside of
//! `options`. The same input in two spellings or positions is an error.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{ErrorCode, Problem, truncate_text};
use crate::input::validation::{OPTIONS, synonyms};
use crate::spec::{InputSchema, PropertyType};

/// Merges `options` into the object and converts names to snake_case.
pub(super) fn normalize_names(
    inputs: &InputSchema,
    mut object: Map<String, Value>,
    problems: &mut Vec<Problem>,
) -> Map<String, Value> {
    let nested = match object.shift_remove(OPTIONS) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(nested)) => nested,
        Some(other) => {
            let problem = Problem::new(ErrorCode::InvalidValue, OPTIONS, "must be an object");
            problems.push(problem.value(other).permit("Give an object."));
            Map::new()
        }
    };
    let top_level = object.into_iter().map(|(key, value)| (key.clone(), key, value));
    let in_options = nested.into_iter().map(|(key, value)| (format!("{OPTIONS}.{key}"), key, value));
    let mut normalized: Map<String, Value> = Map::new();
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    for (source, key, value) in top_level.chain(in_options) {
        // `null` means that the input is not given.
        if value.is_null() {
            continue;
        }
        let name = inputs.present_name(snake_case(&key));
        if inputs.get(&name).is_none() {
            problems.push(unknown_input(inputs, &key, &name));
        } else if let Some(first) = sources.get(&name) {
            problems.push(duplicate_input(&name, first, &source));
        } else {
            let value = to_integer(inputs, &name, value);
            normalized.insert(name.clone(), value);
            sources.insert(name, source);
        }
    }
    normalized
}

/// The same input was given in two positions or spellings.
pub fn duplicate_input(name: &str, first: &str, second: &str) -> Problem {
    Problem::new(ErrorCode::InvalidValue, name, format!("is given twice, as {first} and as {second}"))
        .suggest(Some(format!("Give {name} once.")))
}

/// Some JSON writers print integers as `5.0`.
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
        None => format!("Remove it. The inputs of this command are {}.", synonyms::common_inputs(inputs)),
    };
    Problem::new(ErrorCode::UnknownFlag, truncate_text(key), "is not an input of this command")
        .value(key.into())
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
