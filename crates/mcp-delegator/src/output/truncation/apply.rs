//! Applies a [`TruncationPlan`] to the data of an output. The data retains its shape.
//!
//! Parts with a known name (agent output, events, output of the verify command) are truncated by their own modules. Other
//! lists retain their first items, and other texts lose their middle; all to the same limit, so that no part is truncated
//! for the sake of another.

use serde_json::{Map, Value};

use crate::error::{AppError, Problem};
use crate::output::data::{events, final_message, output, status, verification};
use crate::output::outcome::CommandOutput;
use crate::output::truncation::plan::{Sizes, TruncationPlan, UNLIMITED};

pub const DEFAULT_MAX_BYTES: usize = 1_048_576;

/// Shorter texts are not truncated.
const MIN_TEXT_BYTES: usize = 64;

/// The parts that the caller needs most.
const TRUNCATED_LAST: [&str; 2] = ["final_message", "metadata"];

/// The sizes of the parts that can be truncated.
pub fn sizes(output: &CommandOutput) -> Sizes {
    let (data, error) = output.completion.parts();
    let mut sizes = data.map_or_else(Sizes::default, |data| sizes_of(&data.to_json()));
    if let Some(error) = error {
        let partial = error.context.get("partial_results").map_or_else(Sizes::default, partial_sizes);
        let problems: usize = error.problems.iter().map(problem_size).sum();
        let context: usize = error.context.values().map(json_size).sum();
        let message = error.message.len() + error.detail.as_ref().map_or(0, String::len);
        let all = sizes.total_bytes.max(context).max(problems).max(message);
        sizes = Sizes { total_bytes: all, ..max_sizes(sizes, partial) };
    }
    sizes
}

fn sizes_of(data: &Value) -> Sizes {
    let own = Sizes {
        output_bytes: output::size(&data["output"]),
        event_count: data["events"]["items"].as_array().map_or(0, Vec::len),
        total_bytes: json_size(data),
    };
    let own = max_sizes(own, partial_sizes(&data["metadata"]["error_context"]["partial_results"]));
    let tasks = data["tasks"].as_array().into_iter().flatten();
    tasks.map(sizes_of).fold(own, max_sizes)
}

fn partial_sizes(partial: &Value) -> Sizes {
    Sizes {
        output_bytes: partial["last_output"].as_str().map_or(0, str::len),
        event_count: partial["last_events"].as_array().map_or(0, Vec::len),
        total_bytes: 0,
    }
}

fn max_sizes(a: Sizes, b: Sizes) -> Sizes {
    Sizes {
        output_bytes: a.output_bytes.max(b.output_bytes),
        event_count: a.event_count.max(b.event_count),
        total_bytes: a.total_bytes.max(b.total_bytes),
    }
}

fn json_size(value: &Value) -> usize {
    value.to_string().len()
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

/// Truncates the JSON of data.
pub fn truncate_data(data: &mut Value, plan: TruncationPlan) {
    match data {
        data if plan.drop_all_data => *data = Value::Object(Map::new()),
        Value::Object(task) => truncate_task(task, plan),
        other => truncate_value(other, plan.other_bytes),
    }
}

fn truncate_error(error: &mut AppError, plan: TruncationPlan) {
    truncate_task(&mut error.context, plan);
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

/// Truncates a task, a list of tasks, or any other data object.
fn truncate_task(task: &mut Map<String, Value>, plan: TruncationPlan) {
    let follows_lists = task.contains_key(status::ALL) && task.contains_key(status::QUEUED);
    let message_bytes = task.get("final_message").and_then(Value::as_str).map_or(0, str::len);
    for (key, value) in task.iter_mut() {
        match (key.as_str(), value) {
            // The list loses the items that the lists it repeats lose.
            (status::ALL, Value::Array(items)) if follows_lists => {
                items.iter_mut().for_each(|item| truncate_value(item, plan.other_bytes));
            }
            ("output", Value::Object(streams)) if has_streams(streams) => {
                output::shrink(streams, plan.output_bytes);
            }
            ("events", events) if events["items"].is_array() => {
                shorten_events(events.get_mut("items"), plan);
            }
            ("partial_results", partial) => truncate_partial(partial, plan),
            ("tasks", Value::Array(tasks)) if tasks.iter().all(Value::is_object) => {
                for task in tasks.iter_mut().filter_map(Value::as_object_mut) {
                    truncate_task(task, plan);
                }
                retain_first(tasks, plan.task_list_bytes);
            }
            (key, value) => {
                if key == "verification" {
                    verification::shrink(value, plan.output_bytes);
                }
                if let Some(partial) = value.pointer_mut("/error_context/partial_results") {
                    truncate_partial(partial, plan);
                }
                truncate_value(
                    value,
                    if TRUNCATED_LAST.contains(&key) { plan.priority_bytes } else { plan.other_bytes },
                );
            }
        }
    }
    events::retain_newest(task, plan.max_events);
    final_message::note_size_limit(task, message_bytes);
}

fn has_streams(output: &Map<String, Value>) -> bool {
    output.contains_key("stdout") || output.contains_key("stderr")
}

fn truncate_partial(partial: &mut Value, plan: TruncationPlan) {
    if let Some(Value::String(text)) = partial.get_mut("last_output") {
        *text = output::shrink_last_output(text, plan.output_bytes);
    }
    shorten_events(partial.get_mut("last_events"), plan);
    if let Some(Value::Array(items)) = partial.get_mut("last_events") {
        events::drop_oldest(items, plan.max_events);
    }
}

fn shorten_events(items: Option<&mut Value>, plan: TruncationPlan) {
    if let (Some(Value::Array(items)), true) = (items, plan.shorten_events) {
        events::shorten(items);
    }
}

/// Truncates every list and every text to the same limit, innermost first. Returns at once without a limit, because most
/// output is not truncated.
fn truncate_value(value: &mut Value, max_bytes: usize) {
    match value {
        _ if max_bytes == UNLIMITED => {}
        Value::Array(items) => {
            items.iter_mut().for_each(|item| truncate_value(item, max_bytes));
            retain_first(items, max_bytes);
        }
        Value::Object(object) => object.values_mut().for_each(|item| truncate_value(item, max_bytes)),
        Value::String(text) => shorten(text, max_bytes),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Retains the first items that fit; at least one, unless the limit is 0.
fn retain_first(items: &mut Vec<Value>, max_bytes: usize) {
    let count = count_fitting(items, max_bytes, |item| json_size(item) + 1);
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
