//! Assertions about JSON answers. Each takes the answer and a JSON pointer, panics with what it found instead, and
//! returns the typed value where a caller can assert more about it.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Length of an answer in a failure message.
const MAX_SHOWN: usize = 1_500;

/// The value at a JSON pointer, which must exist.
#[track_caller]
pub(crate) fn at<'a>(answer: &'a Value, pointer: &str) -> &'a Value {
    let Some(found) = answer.pointer(pointer) else { panic!("{pointer} is missing in {}", shown(answer)) };
    found
}

#[track_caller]
pub(crate) fn absent(answer: &Value, pointer: &str) {
    let found = answer.pointer(pointer);
    assert!(found.is_none(), "{pointer} is {} in {}", shown(found.unwrap_or(&Value::Null)), shown(answer));
}

#[track_caller]
pub(crate) fn equals(answer: &Value, pointer: &str, expected: impl Into<Value>) {
    let (found, expected) = (at(answer, pointer), expected.into());
    assert!(*found == expected, "{pointer} is {found}, not {expected}, in {}", shown(answer));
}

#[track_caller]
pub(crate) fn one_of(answer: &Value, pointer: &str, allowed: &[&str]) {
    let found = text(answer, pointer);
    assert!(allowed.contains(&found), "{pointer} is {found}, not one of {allowed:?}");
}

/// A string that is not empty.
#[track_caller]
pub(crate) fn text<'a>(answer: &'a Value, pointer: &str) -> &'a str {
    let found = at(answer, pointer);
    match found.as_str() {
        Some(text) if !text.is_empty() => text,
        _ => panic!("{pointer} is {}, not a text, in {}", shown(found), shown(answer)),
    }
}

/// A string that contains another one.
#[track_caller]
pub(crate) fn contains(answer: &Value, pointer: &str, part: &str) {
    let found = text(answer, pointer);
    assert!(found.contains(part), "{pointer} does not contain {part:?}: {found}");
}

#[track_caller]
pub(crate) fn integer(answer: &Value, pointer: &str) -> i64 {
    typed(answer, pointer, "an integer", Value::as_i64)
}

#[track_caller]
pub(crate) fn number(answer: &Value, pointer: &str) -> f64 {
    typed(answer, pointer, "a number", Value::as_f64)
}

#[track_caller]
pub(crate) fn boolean(answer: &Value, pointer: &str) -> bool {
    typed(answer, pointer, "a boolean", Value::as_bool)
}

#[track_caller]
pub(crate) fn object<'a>(answer: &'a Value, pointer: &str) -> &'a Map<String, Value> {
    typed(answer, pointer, "an object", Value::as_object)
}

#[track_caller]
pub(crate) fn list<'a>(answer: &'a Value, pointer: &str) -> &'a [Value] {
    typed(answer, pointer, "a list", |found| found.as_array().map(Vec::as_slice))
}

#[track_caller]
fn typed<'a, T>(answer: &'a Value, pointer: &str, kind: &str, typed: fn(&'a Value) -> Option<T>) -> T {
    let found = at(answer, pointer);
    let Some(value) = typed(found) else {
        panic!("{pointer} is {}, not {kind}, in {}", shown(found), shown(answer));
    };
    value
}

/// A time in RFC 3339, in UTC.
#[track_caller]
pub(crate) fn time(answer: &Value, pointer: &str) -> Timestamp {
    let found = text(answer, pointer);
    assert!(found.ends_with('Z'), "{pointer} is not in UTC: {found}");
    let Ok(time) = found.parse() else { panic!("{pointer} is no time: {found}") };
    time
}

/// Asserts that an answer is valid by a JSON Schema, the formats included.
#[track_caller]
pub(crate) fn valid(schema: &Value, answer: &Value) {
    let found = violations(schema, answer);
    assert!(found.is_empty(), "{found:?} in {}", shown(answer));
}

/// How an answer violates a JSON Schema.
pub(crate) fn violations(schema: &Value, answer: &Value) -> Vec<String> {
    assert!(schema.get("$schema").is_some() && schema.get("required").is_some(), "{schema} is no schema");
    let validator = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
    validator.iter_errors(answer).map(|error| error.to_string()).collect()
}

/// The beginning of an answer.
fn shown(answer: &Value) -> String {
    let text = answer.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
