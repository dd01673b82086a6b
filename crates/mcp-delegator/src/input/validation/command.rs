//! Checks commands: one string is a command line for a shell, a list is a program and its arguments.
//!
//! The messages name both forms, because a caller who mixes them up would have another command run than
//! intended: a list whose first word is a whole command line, or a string in which `&&` was meant for a
//! shell.

use serde_json::Value;

use crate::error::{ErrorCode, Problem};
use crate::spec::{InputSchema, Marker, Property};

pub(super) const COMMAND_FORMS: &str =
    "Give one string, a command line for sh, or a list of strings, a program and its arguments.";

/// The problems of all commands in the input.
pub(super) fn command_problems(inputs: &InputSchema, input: &Value) -> Vec<Problem> {
    let commands = inputs.properties.iter().filter(|property| property.has(&Marker::Command));
    let given = commands.filter_map(|property| Some((property, input.get(&property.name)?)));
    let problem = |(property, value): (&Property, &Value)| {
        let problem = Problem::new(ErrorCode::InvalidValue, &property.name, command_problem(value)?);
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
}
