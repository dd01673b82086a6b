//! Rejects NUL characters at any depth of the input.
//!
//! File names, arguments and environment variables are C strings and cannot contain NUL.

use serde_json::Value;

use crate::error::Problem;
use crate::input::validation::violations::pattern_error_code;
use crate::spec::InputSchema;

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
    fn nul_is_found_at_every_depth() {
        let value = json!({"a": "x\0", "b": ["y", ["\0"]], "c": {"k\0": "\0"}, "d": "\\0", "e": 0});
        assert_eq!(nul_paths("in".to_owned(), &value), ["in.a", "in.b.1.0", "in.c"]);
    }
}
