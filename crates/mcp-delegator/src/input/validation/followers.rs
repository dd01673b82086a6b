//! Checks the followers of a task: their form, their number and depth, and the values of their inputs.

use delegator_domain::task::{MAX_CHAIN_DEPTH, MAX_CHAIN_TASKS, Mode};
use serde_json::{Map, Value, json};

use super::command::{COMMAND_FORMS, command_problem};
use crate::error::{ErrorCode, Problem};
use crate::input::agent_selection::agent_names;
use crate::input::chain::{FOLLOWER_INPUTS, Follower, followers, is_review};
use crate::spec::InputSchema;

const FORMS: &str = "Give a task text, or an object such as {\"task\": \"…\", \"mode\": \"read-only\"} or {\"review\": true}.";
const MAX_TEXT_CHARS: usize = 100_000;

/// The problems of all followers in the input. `inputs` are those of the task that they follow.
pub(super) fn follower_problems(inputs: &InputSchema, input: &Value) -> Vec<Problem> {
    if inputs.get("on_success").is_none() {
        return Vec::new();
    }
    let found = followers(input);
    if let Some(too_deep) = found.iter().find(|follower| follower.depth >= MAX_CHAIN_DEPTH) {
        let message = format!("is too deep: at most {MAX_CHAIN_DEPTH} tasks may follow each other");
        return vec![Problem::new(ErrorCode::InvalidValue, &too_deep.field, message)];
    }
    if found.len() >= MAX_CHAIN_TASKS {
        let field = found.first().map(|first| first.field.clone()).unwrap_or_default();
        let message =
            format!("makes the chain too long: it may have at most {MAX_CHAIN_TASKS} tasks in total");
        return vec![Problem::new(ErrorCode::InvalidValue, field, message)];
    }
    found.iter().flat_map(|follower| problems_of(inputs, follower)).collect()
}

fn problems_of(inputs: &InputSchema, follower: &Follower<'_>) -> Vec<Problem> {
    let problem = |field: &str, message: &str| {
        Problem::new(ErrorCode::InvalidValue, field, message).suggest(Some(FORMS))
    };
    match follower.given {
        // The command line passes a text that is valid JSON as an object.
        Value::String(text) if text.trim_start().starts_with('{') => {
            vec![problem(&follower.field, "begins with { but is not an object in valid JSON")]
        }
        Value::String(text) => text_problem(&follower.field, text).into_iter().collect(),
        Value::Object(given) => {
            let mut problems = key_problems(inputs, &follower.field, given);
            if !is_review(follower.given) && !given.contains_key("task") {
                problems.push(problem(&follower.field, "has neither a task nor review: true"));
            }
            problems
        }
        other => vec![problem(&follower.field, "must be a task text or an object").value(other.clone())],
    }
}

fn text_problem(field: &str, text: &str) -> Option<Problem> {
    let message = match text.chars().count() {
        _ if text.trim().is_empty() => "must not be blank".to_owned(),
        length if length > MAX_TEXT_CHARS => format!("must have at most {MAX_TEXT_CHARS} characters"),
        _ => return None,
    };
    Some(
        Problem::new(ErrorCode::InvalidValue, field, message)
            .suggest(Some("Describe what the agent should do.")),
    )
}

fn key_problems(inputs: &InputSchema, field: &str, given: &Map<String, Value>) -> Vec<Problem> {
    let problem = |name: &str, message: String| {
        Problem::new(ErrorCode::InvalidValue, format!("{field}.{name}"), message).value(given[name].clone())
    };
    let check = |(name, value): (&String, &Value)| match name.as_str() {
        _ if value.is_null() => None,
        "on_success" | "on_failure" => None,
        "task" => match value.as_str() {
            Some(text) => text_problem(&format!("{field}.task"), text),
            None => Some(problem(name, "must be a text".to_owned())),
        },
        "review" if !value.is_boolean() => Some(problem(name, "must be true or false".to_owned())),
        "review" => None,
        "mode" => mode_problem(given, value).map(|message| problem(name, message)),
        "agent" => agent_names(&json!({"agent": value}), "").err().map(|found| problem(name, found.problem)),
        "model" => {
            let schema = inputs.get(name).map(|property| &property.schema);
            let is_valid =
                value.is_string() && schema.is_none_or(|schema| jsonschema::is_valid(schema, value));
            (!is_valid).then(|| problem(name, "is not the name of a model".to_owned()))
        }
        "verify" if given.get("review") == Some(&Value::Bool(true)) => {
            Some(problem(name, "has no effect on a review, which changes nothing".to_owned()))
        }
        "verify" => command_problem(value)
            .map(|message| problem(name, message.to_owned()).suggest(Some(COMMAND_FORMS))),
        unknown => {
            let problem = Problem::new(
                ErrorCode::UnknownFlag,
                format!("{field}.{unknown}"),
                "is not an input of a task that follows another",
            );
            Some(problem.choose_from(unknown, FOLLOWER_INPUTS.into_iter()))
        }
    };
    given.iter().filter_map(check).collect()
}

fn mode_problem(given: &Map<String, Value>, value: &Value) -> Option<String> {
    let is_review = given.get("review") == Some(&Value::Bool(true));
    match value.as_str().and_then(Mode::from_name) {
        None => Some(format!("must be one of {}", Mode::NAMES.join(", "))),
        Some(mode) if is_review && mode != Mode::ReadOnly => {
            Some("must be read-only: a review changes nothing".to_owned())
        }
        Some(_) => None,
    }
}
