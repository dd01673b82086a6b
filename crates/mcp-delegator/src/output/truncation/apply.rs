//! Applies a [`TruncationPlan`] to JSON, lists and texts. The data retains its shape.
//!
//! Agent output, events, the final message and the lists of `status` are truncated by their own types. Other
//! lists retain their first items, and other texts lose their middle; all to the same limit, so that no part
//! is truncated for the sake of another.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::output::data::output;
use crate::output::truncation::plan::{TruncationPlan, UNLIMITED};

/// Shorter texts are not truncated.
pub const MIN_TEXT_BYTES: usize = 64;

/// The parts that the caller needs most.
const TRUNCATED_LAST: [&str; 2] = ["final_message", "metadata"];
/// The parts that their types truncate. An event is complete or replaced, never shortened in its middle.
const TRUNCATED_BY_TYPE: [&str; 3] = ["output", "events", PARTIAL_RESULTS];
const TASKS: &str = "tasks";
/// Has the tasks of other lists: a task that is in one of them is not dropped.
const ALL_TASKS: &str = "all_tasks";

/// The key of `PartialResults` in the context of an error.
pub const PARTIAL_RESULTS: &str = "partial_results";

pub fn json_size(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}

/// Truncates the JSON of data whose own parts are truncated already.
pub fn truncate_data(data: &mut Value, plan: TruncationPlan) {
    match data {
        data if plan.drop_all_data => *data = Value::Object(Map::new()),
        Value::Object(data) => truncate_object(data, plan),
        other => truncate_value(other, plan.other_bytes),
    }
}

pub fn truncate_object(object: &mut Map<String, Value>, plan: TruncationPlan) {
    for (key, value) in object.iter_mut() {
        match value {
            Value::Array(tasks) if [TASKS, ALL_TASKS].contains(&key.as_str()) => {
                tasks.iter_mut().for_each(|task| truncate_data(task, plan));
                if key == TASKS {
                    retain_first(tasks, plan.task_list_bytes, json_size);
                }
            }
            Value::Object(_) if TRUNCATED_BY_TYPE.contains(&key.as_str()) => {}
            value if TRUNCATED_LAST.contains(&key.as_str()) => truncate_value(value, plan.priority_bytes),
            value => truncate_value(value, plan.other_bytes),
        }
    }
}

/// Truncates every list and every text to the same limit, innermost first. Returns at once without a limit,
/// because most output is not truncated.
fn truncate_value(value: &mut Value, max_bytes: usize) {
    match value {
        _ if max_bytes == UNLIMITED => {}
        Value::Array(items) => {
            items.iter_mut().for_each(|item| truncate_value(item, max_bytes));
            retain_first(items, max_bytes, json_size);
        }
        Value::Object(object) => object.values_mut().for_each(|item| truncate_value(item, max_bytes)),
        Value::String(text) => shorten(text, max_bytes),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Retains the first items that fit; at least one, unless the limit is 0.
pub fn retain_first<T>(items: &mut Vec<T>, max_bytes: usize, size: impl Fn(&T) -> usize) {
    let count = count_fitting(items, max_bytes, |item| size(item) + 1);
    items.truncate(count.max(max_bytes.min(1)));
}

/// How many of the first items fit. Without a limit no item is measured.
pub fn count_fitting<T>(items: &[T], max_bytes: usize, size: impl Fn(&T) -> usize) -> usize {
    if max_bytes == UNLIMITED {
        return items.len();
    }
    let mut remaining = max_bytes;
    let fitting = items.iter().take_while(|item| {
        let size = size(item);
        let fits = size <= remaining;
        remaining = remaining.saturating_sub(size);
        fits
    });
    fitting.count()
}

pub fn shorten(text: &mut String, max_bytes: usize) {
    if text.len() > max_bytes.max(MIN_TEXT_BYTES) {
        *text = output::excerpt(text, max_bytes.max(MIN_TEXT_BYTES));
    }
}
