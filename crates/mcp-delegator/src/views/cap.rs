//! The size cap: an answer that would flood its reader is cut as a plan says (`cut`), and stays data of the same shape.
//!
//! What is known by name (output, events, what a check printed) is cut as its own room does it. Of the rest a list keeps
//! its first items, because a shorter list is still true, and a text loses its middle; all to the same measure, so that
//! no part pays for another.

use serde_json::{Map, Value};

use super::cut::{Cut, Sizes, WHOLE};
use super::{events, output, verification};
use crate::fault::{AppError, Problem};
use crate::outcome::Answer;

pub const DEFAULT_MAX_BYTES: usize = 1_048_576;

/// Texts shorter than this are not worth cutting.
const SHORT: usize = 64;

/// What gives way last: what the caller asked for.
const LAST: [&str; 2] = ["final_message", "metadata"];

/// What there is to cut.
pub fn sizes(answer: &Answer) -> Sizes {
    let (data, error) = answer.completion.parts();
    let mut sizes = data.map_or_else(Sizes::default, sizes_of);
    if let Some(error) = error {
        let partial = error.context.get("partial_results").map_or_else(Sizes::default, partial_sizes);
        let problems: usize = error.problems.iter().map(problem_size).sum();
        let context: usize = error.context.values().map(size).sum();
        let words = error.message.len() + error.detail.as_ref().map_or(0, String::len);
        let all = sizes.all.max(context).max(problems).max(words);
        sizes = Sizes { all, ..larger(sizes, partial) };
    }
    sizes
}

fn sizes_of(data: &Value) -> Sizes {
    let own = Sizes {
        output: output::size(&data["output"]),
        events: data["events"]["items"].as_array().map_or(0, Vec::len),
        all: size(data),
    };
    let tasks = data["tasks"].as_array().into_iter().flatten();
    tasks.map(sizes_of).fold(own, larger)
}

fn partial_sizes(partial: &Value) -> Sizes {
    Sizes {
        output: partial["last_output"].as_str().map_or(0, str::len),
        events: partial["last_events"].as_array().map_or(0, Vec::len),
        all: 0,
    }
}

fn larger(one: Sizes, other: Sizes) -> Sizes {
    Sizes {
        output: one.output.max(other.output),
        events: one.events.max(other.events),
        all: one.all.max(other.all),
    }
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// Cuts an answer so.
pub fn apply(answer: &mut Answer, cut: Cut) {
    let (data, error) = answer.completion.parts_mut();
    if let Some(error) = error {
        cut_error(error, cut);
    }
    match data {
        Some(data) if cut.nothing => *data = Value::Object(Map::new()),
        Some(Value::Object(task)) => cut_task(task, cut),
        Some(other) => level(other, cut.others),
        None => {}
    }
    if let Some(trail) = &answer.trail {
        let (data, _) = answer.completion.parts();
        let shown = data.and_then(|data| data[trail.list].as_array()).map_or(0, Vec::len);
        let next = trail.after(shown);
        answer.facts.extend(next.map(|cursor| ("next_cursor".to_owned(), cursor.into())));
    }
}

fn cut_error(error: &mut AppError, cut: Cut) {
    cut_task(&mut error.context, cut);
    for text in [Some(&mut error.message), error.detail.as_mut()].into_iter().flatten() {
        shorten(text, cut.others);
    }
    let mut room = cut.others;
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
    let facts = problem.value.as_ref().map_or(0, size) + problem.context.values().map(size).sum::<usize>();
    SHORT + problem.field.len() + problem.problem.len() + suggestion + facts
}

/// A task, or a list of them, or anything else an answer is about.
fn cut_task(task: &mut Map<String, Value>, cut: Cut) {
    for (key, value) in task.iter_mut() {
        match (key.as_str(), value) {
            ("output", Value::Object(streams)) if has_streams(streams) => {
                output::shrink(streams, cut.output);
            }
            ("events", events) if events["items"].is_array() => {
                shorten_events(events.get_mut("items"), cut);
            }
            ("partial_results", partial) => cut_partial(partial, cut),
            ("tasks", Value::Array(tasks)) if tasks.iter().all(Value::is_object) => {
                for task in tasks.iter_mut().filter_map(Value::as_object_mut) {
                    cut_task(task, cut);
                }
                keep_first(tasks, cut.tasks);
            }
            (key, value) => {
                if key == "verification" {
                    verification::shrink(value, cut.output);
                }
                level(value, if LAST.contains(&key) { cut.last } else { cut.others });
            }
        }
    }
    events::keep_newest(task, cut.events);
}

fn has_streams(output: &Map<String, Value>) -> bool {
    output.contains_key("stdout") || output.contains_key("stderr")
}

fn cut_partial(partial: &mut Value, cut: Cut) {
    if let Some(Value::String(text)) = partial.get_mut("last_output") {
        *text = output::last_of(text, cut.output);
    }
    shorten_events(partial.get_mut("last_events"), cut);
    if let Some(Value::Array(items)) = partial.get_mut("last_events") {
        events::drop_oldest(items, cut.events);
    }
}

fn shorten_events(items: Option<&mut Value>, cut: Cut) {
    if let (Some(Value::Array(items)), true) = (items, cut.short_events) {
        events::shorten(items);
    }
}

/// Brings every list and every text to the same measure, from the inside out. What stays whole is not even looked at:
/// most answers do, and every one comes this way.
fn level(value: &mut Value, most: usize) {
    match value {
        _ if most == WHOLE => {}
        Value::Array(items) => {
            items.iter_mut().for_each(|item| level(item, most));
            keep_first(items, most);
        }
        Value::Object(object) => object.values_mut().for_each(|item| level(item, most)),
        Value::String(text) => shorten(text, most),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The first items, as many as fit; one of them at least, unless there is room for nothing.
fn keep_first(items: &mut Vec<Value>, most: usize) {
    if most == WHOLE {
        return;
    }
    let mut room = most;
    let kept = items.iter().take_while(|item| {
        let size = size(item) + 1;
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    });
    let kept = kept.count().max(most.min(1));
    items.truncate(kept);
}

fn shorten(text: &mut String, most: usize) {
    if text.len() > most.max(SHORT) {
        *text = output::excerpt(text, most.max(SHORT));
    }
}
