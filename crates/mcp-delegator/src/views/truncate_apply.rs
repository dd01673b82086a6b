//! The size cap: an answer that would flood its reader is cut as a plan says (`cut`), and stays data of the same shape.
//!
//! What is known by name (output, events, what a check printed) is cut as its own room does it. Of the rest a list keeps
//! its first items, because a shorter list is still true, and a text loses its middle; all to the same measure, so that
//! no part pays for another.

use serde_json::{Map, Value};

use super::truncate_plan::{Sizes, TruncationPlan, UNLIMITED};
use super::{events, output, verification};
use crate::error::{AppError, Problem};
use crate::outcome::CommandOutput;

pub const DEFAULT_MAX_BYTES: usize = 1_048_576;

/// Texts shorter than this are not worth cutting.
const MIN_TEXT_BYTES: usize = 64;

/// What gives way last: what the caller asked for.
const TRUNCATED_LAST: [&str; 2] = ["final_message", "metadata"];

/// What there is to cut.
pub fn sizes(answer: &CommandOutput) -> Sizes {
    let (data, error) = answer.completion.parts();
    let mut sizes = data.map_or_else(Sizes::default, sizes_of);
    if let Some(error) = error {
        let partial = error.context.get("partial_results").map_or_else(Sizes::default, partial_sizes);
        let problems: usize = error.problems.iter().map(problem_size).sum();
        let context: usize = error.context.values().map(json_size).sum();
        let words = error.message.len() + error.detail.as_ref().map_or(0, String::len);
        let all = sizes.total_bytes.max(context).max(problems).max(words);
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

fn max_sizes(one: Sizes, other: Sizes) -> Sizes {
    Sizes {
        output_bytes: one.output_bytes.max(other.output_bytes),
        event_count: one.event_count.max(other.event_count),
        total_bytes: one.total_bytes.max(other.total_bytes),
    }
}

fn json_size(value: &Value) -> usize {
    value.to_string().len()
}

/// Cuts an answer so.
pub fn apply(answer: &mut CommandOutput, cut: TruncationPlan) {
    let (data, error) = answer.completion.parts_mut();
    if let Some(error) = error {
        truncate_error(error, cut);
    }
    match data {
        Some(data) if cut.drop_all_data => *data = Value::Object(Map::new()),
        Some(Value::Object(task)) => truncate_task(task, cut),
        Some(other) => truncate_value(other, cut.other_bytes),
        None => {}
    }
    if let Some(trail) = &answer.list_cursors {
        let (data, _) = answer.completion.parts();
        let shown = data.and_then(|data| data[trail.list].as_array()).map_or(0, Vec::len);
        let next = trail.cursor_after(shown);
        answer.facts.extend(next.map(|cursor| ("next_cursor".to_owned(), cursor.into())));
    }
}

fn truncate_error(error: &mut AppError, cut: TruncationPlan) {
    truncate_task(&mut error.context, cut);
    for text in [Some(&mut error.message), error.detail.as_mut()].into_iter().flatten() {
        shorten(text, cut.other_bytes);
    }
    let mut room = cut.other_bytes;
    let kept = error.problems.iter().take_while(|problem| {
        let fits = problem_size(problem) <= room;
        room = room.saturating_sub(problem_size(problem));
        fits
    });
    let kept = kept.count().max(1);
    error.problems.truncate(kept);
}

fn problem_size(problem: &Problem) -> usize {
    let suggestion = problem.suggestion.as_ref().map_or(0, String::len);
    let facts =
        problem.value.as_ref().map_or(0, json_size) + problem.context.values().map(json_size).sum::<usize>();
    MIN_TEXT_BYTES + problem.field.len() + problem.problem.len() + suggestion + facts
}

/// A task, or a list of them, or anything else an answer is about.
fn truncate_task(task: &mut Map<String, Value>, cut: TruncationPlan) {
    for (key, value) in task.iter_mut() {
        match (key.as_str(), value) {
            ("output", Value::Object(streams)) if has_streams(streams) => {
                output::shrink(streams, cut.output_bytes);
            }
            ("events", events) if events["items"].is_array() => {
                shorten_events(events.get_mut("items"), cut);
            }
            ("partial_results", partial) => truncate_partial(partial, cut),
            ("tasks", Value::Array(tasks)) if tasks.iter().all(Value::is_object) => {
                for task in tasks.iter_mut().filter_map(Value::as_object_mut) {
                    truncate_task(task, cut);
                }
                keep_first(tasks, cut.task_list_bytes);
            }
            (key, value) => {
                if key == "verification" {
                    verification::shrink(value, cut.output_bytes);
                }
                truncate_value(
                    value,
                    if TRUNCATED_LAST.contains(&key) { cut.priority_bytes } else { cut.other_bytes },
                );
            }
        }
    }
    events::retain_newest(task, cut.max_events);
}

fn has_streams(output: &Map<String, Value>) -> bool {
    output.contains_key("stdout") || output.contains_key("stderr")
}

fn truncate_partial(partial: &mut Value, cut: TruncationPlan) {
    if let Some(Value::String(text)) = partial.get_mut("last_output") {
        *text = output::tail(text, cut.output_bytes);
    }
    shorten_events(partial.get_mut("last_events"), cut);
    if let Some(Value::Array(items)) = partial.get_mut("last_events") {
        events::drop_oldest(items, cut.max_events);
    }
}

fn shorten_events(items: Option<&mut Value>, cut: TruncationPlan) {
    if let (Some(Value::Array(items)), true) = (items, cut.shorten_events) {
        events::shorten(items);
    }
}

/// Brings every list and every text to the same measure, from the inside out. What stays whole is not even looked at:
/// most answers do, and every one comes this way.
fn truncate_value(value: &mut Value, max_bytes: usize) {
    match value {
        _ if max_bytes == UNLIMITED => {}
        Value::Array(items) => {
            items.iter_mut().for_each(|item| truncate_value(item, max_bytes));
            keep_first(items, max_bytes);
        }
        Value::Object(object) => object.values_mut().for_each(|item| truncate_value(item, max_bytes)),
        Value::String(text) => shorten(text, max_bytes),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The first items, as many as fit; one of them at least, unless there is room for nothing.
fn keep_first(items: &mut Vec<Value>, max_bytes: usize) {
    if max_bytes == UNLIMITED {
        return;
    }
    let mut room = max_bytes;
    let kept = items.iter().take_while(|item| {
        let size = json_size(item) + 1;
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    });
    let kept = kept.count().max(max_bytes.min(1));
    items.truncate(kept);
}

fn shorten(text: &mut String, max_bytes: usize) {
    if text.len() > max_bytes.max(MIN_TEXT_BYTES) {
        *text = output::excerpt(text, max_bytes.max(MIN_TEXT_BYTES));
    }
}
