//! The size cap: an answer that would flood its reader is cut, and says so.
//!
//! The largest list keeps as many of its first items as fit, because a shorter list is still true; where no list is to
//! blame, the longest text loses its middle. What remains is valid data of the same shape.

use serde_json::Value;

use crate::outcome::{Answer, Completion, Truncation, Warning};

pub const DEFAULT_MAX_BYTES: usize = 1_048_576;

const CUT_MARK: &str = " [truncated] ";

/// Texts shorter than this are not worth cutting.
const SHORT: usize = 64;

/// Cuts the answer's data to `budget` bytes so that the whole fits `max_bytes`, and notes it.
pub fn apply(answer: &mut Answer, budget: usize, max_bytes: usize) -> Option<Truncation> {
    let data = match &mut answer.completion {
        Completion::Done(data) | Completion::Partial(data) | Completion::Incomplete(data) => data,
        Completion::Failed(_, Some(data)) => data,
        Completion::Failed(_, None) | Completion::NotModified => return None,
    };
    let original_size = size(data);
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

/// Bytes of an answer's data, whichever way it ended.
pub fn data_size(answer: &Answer) -> usize {
    match &answer.completion {
        Completion::Done(data) | Completion::Partial(data) | Completion::Incomplete(data) => size(data),
        Completion::Failed(_, data) => data.as_ref().map_or(0, size),
        Completion::NotModified => 0,
    }
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

fn shrink(data: &mut Value, budget: usize) {
    // Every turn makes the largest part smaller, and parts that cannot shrink are not chosen again.
    while size(data) > budget {
        let over = size(data) - budget;
        let list =
            largest(data, &|value| value.as_array().filter(|items| !items.is_empty()).map(|_| size(value)));
        let text = largest(data, &|value| value.as_str().filter(|text| text.len() > SHORT).map(str::len));
        let cut = match (list, text) {
            (Some((list, of)), Some((_, text))) if of >= text => shorten_list(data, &list, over),
            (_, Some((path, _))) => shorten_text(data, &path, over),
            (Some((list, _)), None) => shorten_list(data, &list, over),
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
    // Of two equally large the outer one: a list is cut before what it holds.
    below.into_iter().chain(own).max_by_key(|(_, size)| *size)
}

/// Drops items from the end until at least `over` bytes are gone.
fn shorten_list(data: &mut Value, path: &str, over: usize) -> bool {
    let Some(Value::Array(items)) = data.pointer_mut(path) else { return false };
    let mut gone = 0;
    while gone < over {
        match items.pop() {
            Some(item) => gone += size(&item) + 1,
            None => break,
        }
    }
    true
}

/// Takes at least `over` bytes out of the middle, as far as there is one.
fn shorten_text(data: &mut Value, path: &str, over: usize) -> bool {
    let Some(Value::String(text)) = data.pointer_mut(path) else { return false };
    let keep =
        text.len().saturating_sub(over + CUT_MARK.len()).min(text.len() / 2 + text.len() / 4).max(SHORT / 2);
    let head = text.floor_char_boundary(keep / 2);
    let tail = text.ceil_char_boundary(text.len() - keep / 2);
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
        assert_eq!(apply(&mut answer, DEFAULT_MAX_BYTES, DEFAULT_MAX_BYTES), None);
        assert!(answer.warnings.is_empty());
    }

    #[test]
    fn a_cut_answer_says_so() {
        let mut answer = Answer::done(json!({"items": vec!["x".repeat(100); 1000]}));
        let truncation = apply(&mut answer, 8000, 8192).unwrap();
        assert!(truncation.original_size > 100_000);
        assert_eq!(answer.warnings[0].code, "W_TRUNCATION_001");
        let Completion::Done(data) = &answer.completion else { unreachable!() };
        assert_eq!(data["items"].as_array().unwrap().len(), 77, "as many items as fit");
    }

    proptest! {
        #[test]
        fn the_cut_always_fits(texts in prop::collection::vec(".{0,400}", 0..60), max in 4096usize..20_000) {
            let mut answer = Answer::done(json!({"one": texts.join("é"), "many": texts}));
            apply(&mut answer, max, max);
            let Completion::Done(data) = &answer.completion else { unreachable!() };
            prop_assert!(size(data) <= max);
            prop_assert!(data.is_object());
        }
    }
}
