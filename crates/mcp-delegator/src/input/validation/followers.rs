//! Checks the followers of a task: their form, their number and depth, and the values of their inputs.
//!
//! Their schema has no type, because a follower is a text or an object and may have followers itself.

use delegator_domain::task::{MAX_CHAIN_DEPTH, MAX_CHAIN_TASKS, Mode};
use serde_json::{Map, Value};

use super::value_forms::{COMMAND_FORMS, command_problem, names_problem};
use crate::error::{ErrorCode, Problem};
use crate::spec::InputSchema;

const FORMS: &str = "Give a task text, or an object such as {\"task\": \"…\", \"mode\": \"read-only\"} or {\"review\": true}.";
const MAX_TEXT_CHARS: usize = 100_000;
const LINKS: [&str; 2] = ["on_success", "on_failure"];
const FOLLOWER_INPUTS: [&str; 8] =
    ["task", "review", "mode", "agent", "model", "verify", "on_success", "on_failure"];

struct GivenFollower<'a> {
    /// `on_success.on_failure`.
    field: String,
    given: &'a Value,
    /// How many tasks come before it.
    depth: usize,
}

/// The problems of all followers in the input. `inputs` are those of the task that they follow.
pub(super) fn follower_problems(inputs: &InputSchema, input: &Value) -> Vec<Problem> {
    if inputs.get("on_success").is_none() {
        return Vec::new();
    }
    let found = followers(input);
    if let Some(too_deep) = found.iter().find(|follower| follower.depth >= MAX_CHAIN_DEPTH) {
        let message = format!("is too deep: at most {MAX_CHAIN_DEPTH} tasks may follow each other");
        return vec![Problem::invalid(&too_deep.field, message)];
    }
    if found.len() >= MAX_CHAIN_TASKS {
        let field = found.first().map(|first| first.field.clone()).unwrap_or_default();
        let message =
            format!("makes the chain too long: it may have at most {MAX_CHAIN_TASKS} tasks in total");
        return vec![Problem::invalid(field, message)];
    }
    found.iter().flat_map(|follower| problems_of(inputs, follower)).collect()
}

/// All followers, each after its predecessor. Ends soon after the first one that exceeds the limits.
fn followers(input: &Value) -> Vec<GivenFollower<'_>> {
    let mut found = direct_followers(input, "", 1);
    let mut next = 0;
    while let Some(follower) = found.get(next)
        && found.len() <= MAX_CHAIN_TASKS
    {
        if follower.depth < MAX_CHAIN_DEPTH {
            let prefix = format!("{}.", follower.field);
            let further = direct_followers(follower.given, &prefix, follower.depth + 1);
            found.extend(further);
        }
        next += 1;
    }
    found
}

fn direct_followers<'a>(input: &'a Value, prefix: &str, depth: usize) -> Vec<GivenFollower<'a>> {
    let follower = |name: &str| {
        let given = input.get(name).filter(|given| !given.is_null())?;
        Some(GivenFollower { field: format!("{prefix}{name}"), given, depth })
    };
    LINKS.into_iter().filter_map(follower).collect()
}

fn is_review(given: &Map<String, Value>) -> bool {
    given.get("review") == Some(&Value::Bool(true))
}

fn problems_of(inputs: &InputSchema, follower: &GivenFollower<'_>) -> Vec<Problem> {
    let problem = |field: &str, message: &str| Problem::invalid(field, message).suggest(Some(FORMS));
    match follower.given {
        // The command line passes a text that is valid JSON as an object.
        Value::String(text) if text.trim_start().starts_with('{') => {
            vec![problem(&follower.field, "begins with { but is not an object in valid JSON")]
        }
        Value::String(text) => text_problem(&follower.field, text).into_iter().collect(),
        Value::Object(given) => {
            let mut problems = key_problems(inputs, &follower.field, given);
            if !is_review(given) && !given.contains_key("task") {
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
    Some(Problem::invalid(field, message).suggest(Some("Describe what the agent should do.")))
}

fn key_problems(inputs: &InputSchema, field: &str, given: &Map<String, Value>) -> Vec<Problem> {
    let problem = |name: &str, message: String| {
        Problem::invalid(format!("{field}.{name}"), message).value(given[name].clone())
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
        "agent" => names_problem(value).map(|message| problem(name, message.to_owned())),
        "model" => {
            let schema = inputs.get(name).map(|property| &property.schema);
            let is_valid =
                value.is_string() && schema.is_none_or(|schema| jsonschema::is_valid(schema, value));
            (!is_valid).then(|| problem(name, "is not the name of a model".to_owned()))
        }
        "verify" if is_review(given) => {
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
    match value.as_str().and_then(Mode::from_name) {
        None => Some(format!("must be one of {}", Mode::NAMES.join(", "))),
        Some(mode) if is_review(given) && mode != Mode::ReadOnly => {
            Some("must be read-only: a review changes nothing".to_owned())
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_search_for_followers_is_bounded() {
        let mut deep = json!("last");
        for _ in 0..100 {
            deep = json!({"task": "x", "on_success": deep.clone(), "on_failure": deep});
            if deep.to_string().len() > 1_000_000 {
                break;
            }
        }
        assert!(followers(&deep).len() <= MAX_CHAIN_TASKS + 2);
    }
}
