//! The size cap: an answer that would flood its reader is cut, and says so.
//!
//! Lists lose items from their end first, because a shorter list is still true; then the longest texts lose their
//! middle. What remains is valid data of the same shape.

use serde_json::Value;

use crate::outcome::{Answer, Completion, Truncation, Warning};

pub const DEFAULT_MAX_BYTES: usize = 1_048_576;

/// Room for everything around the data.
const ENVELOPE_BYTES: usize = 2048;

const CUT_MARK: &str = " [truncated] ";

/// Cuts the answer's data to fit, and notes it.
pub fn apply(answer: &mut Answer, max_bytes: usize) -> Option<Truncation> {
    let data = match &mut answer.completion {
        Completion::Done(data) | Completion::Partial(data) | Completion::Incomplete(data) => data,
        Completion::Failed(_, Some(data)) => data,
        Completion::Failed(_, None) | Completion::NotModified => return None,
    };
    let original_size = size(data);
    let budget = max_bytes.saturating_sub(ENVELOPE_BYTES);
    if original_size <= budget {
        return None;
    }
    shrink(data, budget);
    answer.warnings.push(Warning::new(
        "W_TRUNCATION_001",
        format!("The answer had {original_size} bytes and was cut to fit {max_bytes}; narrow it with --fields or --limit, or raise --max-bytes."),
    ));
    Some(Truncation { max_bytes, original_size })
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

fn shrink(data: &mut Value, budget: usize) {
    // Halving the largest list, then the largest text, gets there in logarithmically many turns per element.
    for _ in 0..10_000 {
        if size(data) <= budget {
            return;
        }
        let longest_list =
            largest(data, &|value| value.as_array().filter(|items| items.len() > 1).map(|_| size(value)));
        let longest_text =
            largest(data, &|value| value.as_str().filter(|text| text.len() > 64).map(str::len));
        let cut = match (longest_list, longest_text) {
            (Some((list, of)), Some((_, text))) if of >= text => halve_list(data, &list),
            (_, Some((path, _))) => halve_text(data, &path),
            (Some((list, _)), None) => halve_list(data, &list),
            (None, None) => false,
        };
        if !cut {
            *data = Value::Object(serde_json::Map::new());
            return;
        }
    }
}

/// The largest value a measure applies to, and how to get there.
fn largest(value: &Value, measure: &dyn Fn(&Value) -> Option<usize>) -> Option<(String, usize)> {
    let own = measure(value).map(|size| (String::new(), size));
    let below: Vec<(String, usize)> = match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .filter_map(|(at, item)| {
                largest(item, measure).map(|(path, size)| (format!("/{at}{path}"), size))
            })
            .collect(),
        Value::Object(object) => object
            .iter()
            .filter_map(|(key, item)| {
                let key = key.replace('~', "~0").replace('/', "~1");
                largest(item, measure).map(|(path, size)| (format!("/{key}{path}"), size))
            })
            .collect(),
        _ => Vec::new(),
    };
    own.into_iter().chain(below).max_by_key(|(_, size)| *size)
}

fn halve_list(data: &mut Value, path: &str) -> bool {
    match data.pointer_mut(path) {
        Some(Value::Array(items)) => {
            items.truncate(items.len() / 2);
            true
        }
        _ => false,
    }
}

fn halve_text(data: &mut Value, path: &str) -> bool {
    let Some(Value::String(text)) = data.pointer_mut(path) else { return false };
    let quarter = text.len() / 4;
    let head = text.floor_char_boundary(quarter);
    let tail = text.ceil_char_boundary(text.len() - quarter);
    *text = format!("{}{CUT_MARK}{}", &text[..head], &text[tail..]);
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_is_left_alone() {
        let mut answer = Answer::done(json!({"a": [1, 2, 3]}));
        assert_eq!(apply(&mut answer, DEFAULT_MAX_BYTES), None);
        assert!(answer.warnings.is_empty());
    }

    #[test]
    fn a_cut_answer_says_so() {
        let mut answer = Answer::done(json!({"items": vec!["x".repeat(100); 1000]}));
        let truncation = apply(&mut answer, 8192).unwrap();
        assert!(truncation.original_size > 100_000);
        assert_eq!(answer.warnings[0].code, "W_TRUNCATION_001");
    }

    proptest! {
        #[test]
        fn the_cut_always_fits(texts in prop::collection::vec(".{0,400}", 0..60), max in 4096usize..20_000) {
            let mut answer = Answer::done(json!({"one": texts.join("é"), "many": texts}));
            apply(&mut answer, max);
            let Completion::Done(data) = &answer.completion else { unreachable!() };
            prop_assert!(size(data) <= max);
            prop_assert!(data.is_object());
        }
    }
}
