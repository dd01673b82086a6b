//! Checks forms of values that a schema cannot express: commands, names, and texts without NUL.
//!
//! The messages about commands name both forms, because a caller who mixes them up would have another command
//! run than intended: a list whose first word is a whole command line, or a string in which `&&` was meant
//! for a shell.

use serde_json::Value;

use crate::error::Problem;
use crate::input::validation::violations::pattern_error_code;
use crate::spec::{InputSchema, Marker, Property};

pub(super) const COMMAND_FORMS: &str =
    "Give one string, a command line for sh, or a list of strings, a program and its arguments.";

pub(super) fn command_problems(inputs: &InputSchema, input: &Value) -> Vec<Problem> {
    let commands = inputs.properties.iter().filter(|property| property.has(&Marker::Command));
    let given = commands.filter_map(|property| Some((property, input.get(&property.name)?)));
    let problem = |(property, value): (&Property, &Value)| {
        let problem = Problem::invalid(&property.name, command_problem(value)?);
        Some(problem.value(value.clone()).suggest(Some(COMMAND_FORMS)))
    };
    given.filter_map(problem).collect()
}

pub(super) fn command_problem(value: &Value) -> Option<&'static str> {
    let is_blank = |text: &str| text.trim().is_empty();
    let items = match value {
        Value::String(line) => return is_blank(line).then_some("must not be blank"),
        Value::Array(items) => items,
        _ => return Some("must be a string or a list of strings"),
    };
    let words: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
    match words.as_deref() {
        None => Some("must be a string or a list of strings"),
        Some([]) => Some("must not be an empty list"),
        Some([program, ..]) if is_blank(program) => Some("has a blank first word, which is the program"),
        Some([program, ..]) if program.contains(char::is_whitespace) => {
            Some("the first word of a list is the program; give one string for a command line")
        }
        Some(_) => None,
    }
}

const MAX_AGENTS: usize = 4;

pub(super) fn name_problems(inputs: &InputSchema, input: &Value) -> Vec<Problem> {
    let names = inputs.properties.iter().filter(|property| property.has(&Marker::Names));
    let problem = |name: &String| Some(Problem::invalid(name, names_problem(input.get(name)?)?));
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

/// One problem for each position. The value is not repeated in the message.
pub(super) fn nul_problems(inputs: &InputSchema, input: &Value) -> Vec<Problem> {
    let given = input.as_object().into_iter().flatten();
    given
        .flat_map(|(name, value)| {
            let paths = nul_paths(name.clone(), value).into_iter();
            paths.map(|path| {
                Problem::new(pattern_error_code(inputs.get(name)), path, "must not contain NUL characters")
            })
        })
        .collect()
}

/// Paths of the strings that contain NUL. A key with NUL is reported by the path of its object.
fn nul_paths(path: String, value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.contains('\0') => vec![path],
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.flat_map(|(at, item)| nul_paths(format!("{path}.{at}"), item)).collect()
        }
        Value::Object(object) if object.keys().any(|key| key.contains('\0')) => vec![path],
        Value::Object(object) => {
            object.iter().flat_map(|(key, item)| nul_paths(format!("{path}.{key}"), item)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commands_are_command_lines_or_programs_with_arguments() {
        for command in [json!("a && b"), json!("a\nb"), json!(["a"]), json!(["a", "b c", "", "&&"])] {
            assert_eq!(command_problem(&command), None, "{command}");
        }
        for (command, problem) in [
            (json!(" \n"), "must not be blank"),
            (json!([]), "must not be an empty list"),
            (json!(["", "x"]), "has a blank first word"),
            (json!(["cargo test"]), "the first word of a list is the program"),
            (json!(["a", 1]), "must be a string or a list of strings"),
            (json!({"a": "b"}), "must be a string or a list of strings"),
            (json!(true), "must be a string or a list of strings"),
        ] {
            assert!(command_problem(&command).is_some_and(|text| text.starts_with(problem)), "{command}");
        }
    }

    #[test]
    fn nul_is_found_at_every_depth() {
        let value = json!({"a": "x\0", "b": ["y", ["\0"]], "c": {"k\0": "\0"}, "d": "\\0", "e": 0});
        assert_eq!(nul_paths("in".to_owned(), &value), ["in.a", "in.b.1.0", "in.c"]);
    }
}
