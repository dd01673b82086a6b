//! NUL ends text too early in too many places, so no text holds one, however deep in an input it stands.

use serde_json::Value;

use super::violations::code_of_form;
use crate::fault::Problem;
use crate::registry::InputSchema;

/// One problem for each place. What stands there is not repeated.
pub(super) fn found(inputs: &InputSchema, input: &Value) -> Vec<Problem> {
    let given = input.as_object().into_iter().flatten();
    given
        .flat_map(|(name, value)| {
            let places = places(name.clone(), value).into_iter();
            places.map(|place| {
                Problem::new(code_of_form(inputs.get(name)), place, "must not contain NUL characters")
            })
        })
        .collect()
}

/// Where there are any: a name with one in it is told by what it stands in.
fn places(place: String, value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.contains('\0') => vec![place],
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.flat_map(|(at, item)| places(format!("{place}.{at}"), item)).collect()
        }
        Value::Object(object) if object.keys().any(|key| key.contains('\0')) => vec![place],
        Value::Object(object) => {
            object.iter().flat_map(|(key, item)| places(format!("{place}.{key}"), item)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_place_is_found_and_no_other() {
        let value = json!({"a": "x\0", "b": ["y", ["\0"]], "c": {"k\0": "\0"}, "d": "\\0", "e": 0});
        assert_eq!(places("in".to_owned(), &value), ["in.a", "in.b.1.0", "in.c"]);
    }
}
