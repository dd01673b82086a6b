//! Normalizes the names of inputs, task ids and paths.
//!
//! Models often mix spellings, so camelCase is accepted, and advanced inputs may stand inside or outside of
//! `options`. The same input in two spellings or positions is an error. A person types paths relative to the
//! current directory; a tool call must give absolute ones, because an MCP client does not know the server's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use delegator_domain::task::TaskLocation;
use serde_json::{Map, Value};

use crate::error::{ErrorCode, Problem, truncate_text};
use crate::input::validation::{OPTIONS, synonyms};
use crate::spec::{InputSchema, Marker, Property, PropertyType};

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
            let problem = Problem::invalid(OPTIONS, "must be an object");
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
    Problem::invalid(name, format!("is given twice, as {first} and as {second}"))
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

/// Writes the prefix of each task id in the input as ours. The case of the rest does not count.
pub(super) fn normalize_task_ids(input: &mut Value) {
    for name in ["task_id", "task_ids"] {
        match input.get_mut(name) {
            Some(Value::Array(ids)) => ids.iter_mut().for_each(normalize_task_id),
            Some(id) => normalize_task_id(id),
            None => {}
        }
    }
}

fn normalize_task_id(id: &mut Value) {
    let Value::String(text) = id else { return };
    for prefix in TaskLocation::ALL.map(|location| format!("T-{}-", location.name())) {
        if text.get(..prefix.len()).is_some_and(|given| given.eq_ignore_ascii_case(&prefix)) {
            text.replace_range(..prefix.len(), &prefix);
        }
    }
}

/// Makes the paths in the input absolute. An empty path stays as it is: the schema refuses it.
pub(super) fn resolve_paths(inputs: &InputSchema, input: &mut Value, current_dir: &Path) {
    for Property { name, .. } in inputs.properties.iter().filter(|property| property.has(&Marker::Path)) {
        match input.get_mut(name) {
            Some(Value::Array(items)) => items.iter_mut().for_each(|item| resolve_path(item, current_dir)),
            Some(value) => resolve_path(value, current_dir),
            None => {}
        }
    }
}

fn resolve_path(value: &mut Value, current_dir: &Path) {
    if let Value::String(path) = value
        && !path.is_empty()
        && !path.starts_with('/')
    {
        // Without `.` components. `..` stays: behind a symbolic link it does not lead back.
        let resolved: PathBuf = current_dir.join(&*path).components().collect();
        *path = resolved.display().to_string();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prefix_is_accepted_in_any_case() {
        let mut input = json!({
            "task_id": "T-LOCAL-N9G5DVGFFT", "task_ids": ["t-cloud-n9g5", "N9G5", "é-local-n9g5"], "task": "T-LOCAL-1"
        });
        normalize_task_ids(&mut input);
        let expected = json!({
            "task_id": "T-local-N9G5DVGFFT", "task_ids": ["T-cloud-n9g5", "N9G5", "é-local-n9g5"],
            "task": "T-LOCAL-1"
        });
        assert_eq!(input, expected);
    }

    #[test]
    fn relative_paths_start_in_the_current_directory() {
        let inputs = crate::commands::local::exec::SPEC.inputs();
        let mut input = json!({
            "task": "web", "working_dir": "./web/", "add_dirs": ["../lib", "/abs", ""], "images": "not a list"
        });
        resolve_paths(&inputs, &mut input, Path::new("/home/me/p"));
        let expected = json!({
            "task": "web", "working_dir": "/home/me/p/web", "add_dirs": ["/home/me/p/../lib", "/abs", ""],
            "images": "/home/me/p/not a list"
        });
        assert_eq!(input, expected);
        input = json!({"working_dir": "."});
        resolve_paths(&inputs, &mut input, Path::new("/home/me/p"));
        assert_eq!(input, json!({"working_dir": "/home/me/p"}));
    }
}
