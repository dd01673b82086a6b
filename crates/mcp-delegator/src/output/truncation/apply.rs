//! Applies a [`TruncationPlan`] to an output. The data retains its shape.
//!
//! Agent output, events, the final message and the lists of `status` are truncated by their own types. Other lists retain
//! their first items, and other texts lose their middle; all to the same limit, so that no part is truncated for the sake
//! of another.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{AppError, Problem};
use crate::output::data::failure::PartialResults;
use crate::output::data::output;
use crate::output::outcome::CommandOutput;
use crate::output::truncation::plan::{Sizes, TruncationPlan, UNLIMITED};

pub const DEFAULT_MAX_BYTES: usize = 1_048_576;

/// Shorter texts are not truncated.
const MIN_TEXT_BYTES: usize = 64;

/// The parts that the caller needs most.
const TRUNCATED_LAST: [&str; 2] = ["final_message", "metadata"];
/// The parts that their types truncate. An event is complete or replaced, never shortened in its middle.
const TRUNCATED_BY_TYPE: [&str; 3] = ["output", "events", PARTIAL_RESULTS];
/// A list of tasks, which has a limit of its own.
const TASKS: &str = "tasks";
/// Has the tasks of other lists: a task that is in one of them is not dropped.
const ALL_TASKS: &str = "all_tasks";

/// The key of [`PartialResults`] in the context of an error.
const PARTIAL_RESULTS: &str = "partial_results";

/// The sizes of the parts that can be truncated.
pub fn sizes(output: &CommandOutput) -> Sizes {
    let (data, error) = output.completion.parts();
    let mut sizes = data.map_or_else(Sizes::default, |data| Sizes {
        total_bytes: json_size(&data.to_json()),
        ..data.part_sizes()
    });
    if let Some(error) = error {
        let partial = partial_results(error).map_or_else(Sizes::default, |partial| partial.sizes());
        let problems: usize = error.problems.iter().map(problem_size).sum();
        let context: usize = error.context.values().map(json_size).sum();
        let message = error.message.len() + error.detail.as_ref().map_or(0, String::len);
        let all = sizes.total_bytes.max(context).max(problems).max(message);
        sizes = Sizes { total_bytes: all, ..sizes.max(partial) };
    }
    sizes
}

fn partial_results(error: &AppError) -> Option<PartialResults> {
    PartialResults::deserialize(error.context.get(PARTIAL_RESULTS)?).ok()
}

/// Bytes of the JSON of a value.
pub fn json_size(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}

pub fn apply(output: &mut CommandOutput, plan: TruncationPlan) {
    let (data, error) = output.completion.parts_mut();
    if let Some(error) = error {
        truncate_error(error, plan);
    }
    if let Some(data) = data {
        data.truncate(plan);
    }
    output.update_cursors();
}

/// Truncates the JSON of data whose own parts are truncated already.
pub fn truncate_data(data: &mut Value, plan: TruncationPlan) {
    match data {
        data if plan.drop_all_data => *data = Value::Object(Map::new()),
        Value::Object(data) => truncate_object(data, plan),
        other => truncate_value(other, plan.other_bytes),
    }
}

fn truncate_error(error: &mut AppError, plan: TruncationPlan) {
    if let Some(mut partial) = partial_results(error) {
        partial.shrink(plan);
        error.context.insert(PARTIAL_RESULTS.to_owned(), json!(partial));
    }
    truncate_object(&mut error.context, plan);
    for text in [Some(&mut error.message), error.detail.as_mut()].into_iter().flatten() {
        shorten(text, plan.other_bytes);
    }
    let count = count_fitting(&error.problems, plan.other_bytes, problem_size).max(1);
    error.problems.truncate(count);
}

fn problem_size(problem: &Problem) -> usize {
    let facts =
        problem.value.as_ref().map_or(0, json_size) + problem.context.values().map(json_size).sum::<usize>();
    MIN_TEXT_BYTES + problem.field.len() + problem.problem.len() + problem.advice().len() + facts
}

fn truncate_object(object: &mut Map<String, Value>, plan: TruncationPlan) {
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

/// Truncates every list and every text to the same limit, innermost first. Returns at once without a limit, because most
/// output is not truncated.
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
