//! NUL ends text too early in too many places, so no text holds one, however deep in an input it stands.

use serde_json::Value;

use super::violations::pattern_error_code;
use crate::error::Problem;
use crate::spec::InputSchema;

/// One problem for each place. What stands there is not repeated.
pub(super) fn nul_problems(inputs: &InputSchema, input: &Value) -> Vec<Problem> {
    let given = input.as_object().into_iter().flatten();
    given
        .flat_map(|(name, value)| {
            let places = nul_paths(name.clone(), value).into_iter();
            places.map(|place| {
                Problem::new(pattern_error_code(inputs.get(name)), place, "must not contain NUL characters")
            })
        })
        .collect()
}

/// Where there are any: a name with one in it is told by what it stands in.
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
