//! The followers in a raw input: `on_success` and `on_failure`, which may have followers themselves.
//!
//! A follower is a task text, or an object with some of the inputs of a task. The inputs that it does not have are those of
//! its predecessor, unless they belong to a single task (its text, verify command, output schema, images, thread) or to
//! another agent. [`followers`] computes the complete input of each, as if it had been submitted by itself, so that the same
//! checks apply to all tasks of a chain.

use delegator_domain::task::{ChainOutcome, MAX_CHAIN_DEPTH, MAX_CHAIN_TASKS, Mode};
use serde_json::{Map, Value};

use crate::input::preflight::requested_mode;

/// The inputs that name followers.
pub const LINKS: [(&str, ChainOutcome); 2] =
    [("on_success", ChainOutcome::Success), ("on_failure", ChainOutcome::Failure)];

/// The inputs of a follower.
pub const FOLLOWER_INPUTS: [&str; 8] =
    ["task", "review", "mode", "agent", "model", "verify", "on_success", "on_failure"];

/// What a follower does not take over from its predecessor.
const NOT_INHERITED: [&str; 16] = [
    "task",
    "review",
    "verify",
    "output_schema",
    "images",
    "idempotency_key",
    "thread_id",
    "task_id",
    "confirm",
    "async",
    "attempts",
    "agents",
    "models",
    "call_budget_sec",
    "on_success",
    "on_failure",
];

/// What a follower takes over only together with the agent.
const OF_THE_AGENT: [&str; 7] =
    ["model", "profile", "reasoning_effort", "live", "salvage", "env_policy", "env_allow_list"];

/// A follower in an input.
#[derive(Debug)]
pub struct Follower<'a> {
    /// Where it is: `on_success.on_failure`.
    pub field: String,
    pub on: ChainOutcome,
    /// As it was given.
    pub given: &'a Value,
    /// Its complete input, without followers.
    pub input: Value,
    /// The position of its predecessor in the list; `None` if that is the task itself.
    pub predecessor: Option<usize>,
    /// How many tasks come before it.
    pub depth: usize,
}

/// All followers in an input, each after its predecessor. Ends soon after the first one that exceeds the limits.
pub fn followers(input: &Value) -> Vec<Follower<'_>> {
    let mut found = direct_followers(input, input, "", None, 1);
    let mut next = 0;
    while let Some(follower) = found.get(next)
        && found.len() <= MAX_CHAIN_TASKS
    {
        let field = format!("{}.", follower.field);
        if follower.depth < MAX_CHAIN_DEPTH {
            let further =
                direct_followers(follower.given, &follower.input, &field, Some(next), follower.depth + 1);
            found.extend(further);
        }
        next += 1;
    }
    found
}

fn direct_followers<'a>(
    given: &'a Value,
    complete: &Value,
    prefix: &str,
    predecessor: Option<usize>,
    depth: usize,
) -> Vec<Follower<'a>> {
    let follower = |(name, on): (&str, ChainOutcome)| {
        let given = given.get(name).filter(|given| !given.is_null())?;
        let (field, input) = (format!("{prefix}{name}"), follower_input(complete, given));
        Some(Follower { field, on, given, input, predecessor, depth })
    };
    LINKS.into_iter().filter_map(follower).collect()
}

/// The input of a follower as if it had been submitted by itself.
fn follower_input(predecessor: &Value, given: &Value) -> Value {
    let mut input: Map<String, Value> = predecessor.as_object().cloned().unwrap_or_default();
    input.retain(|name, _| !NOT_INHERITED.contains(&name.as_str()));
    if input.get("mode").is_some_and(|mode| mode == "preview") {
        input.insert("mode".into(), Mode::ReadOnly.name().into());
    }
    match given {
        Value::Object(own) => {
            if own.contains_key("agent") {
                input.retain(|name, _| !OF_THE_AGENT.contains(&name.as_str()));
            }
            let own = own.iter().filter(|(name, _)| LINKS.iter().all(|(link, _)| *name != link));
            input.extend(own.map(|(name, value)| (name.clone(), value.clone())));
            if is_review(given) {
                input.insert("mode".into(), Mode::ReadOnly.name().into());
            }
        }
        text => {
            input.insert("task".into(), text.clone());
        }
    }
    Value::Object(input)
}

pub fn is_review(given: &Value) -> bool {
    given.get("review") == Some(&Value::Bool(true))
}

/// The widest sandbox mode of a task and its followers, if one is given and valid.
pub fn widest_mode(input: &Value) -> Option<Mode> {
    let modes = followers(input).into_iter().filter_map(|follower| requested_mode(&follower.input));
    modes.chain(requested_mode(input)).max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_follower_has_the_inputs_of_its_predecessor_unless_they_belong_to_one_task() {
        let input = json!({
            "task": "change it", "mode": "workspace-write", "model": "m", "profile": "p", "verify": "cargo test",
            "labels": {"a": "b"}, "idempotency_key": "k", "hard_timeout_sec": 5,
            "on_success": {"review": true, "agent": "claude"},
            "on_failure": "fix it",
        });
        let found = followers(&input);
        let inputs: Vec<_> =
            found.iter().map(|follower| (follower.field.as_str(), &follower.input)).collect();
        let review = json!({
            "mode": "read-only", "labels": {"a": "b"}, "hard_timeout_sec": 5, "review": true, "agent": "claude"
        });
        let fix = json!({
            "mode": "workspace-write", "model": "m", "profile": "p", "labels": {"a": "b"}, "hard_timeout_sec": 5,
            "task": "fix it"
        });
        assert_eq!(inputs, [("on_success", &review), ("on_failure", &fix)]);
    }

    #[test]
    fn followers_of_followers_are_found_in_order_and_inherit_step_by_step() {
        let input = json!({"task": "1", "mode": "preview", "on_success": {
            "task": "2", "mode": "workspace-write", "on_failure": {"task": "4"},
            "on_success": {"task": "3", "mode": "read-only", "on_success": "5"}
        }});
        let found = followers(&input);
        let summary: Vec<_> = found
            .iter()
            .map(|one| (one.field.as_str(), one.predecessor, one.depth, requested_mode(&one.input).unwrap()))
            .collect();
        assert_eq!(
            summary,
            [
                ("on_success", None, 1, Mode::WorkspaceWrite),
                ("on_success.on_success", Some(0), 2, Mode::ReadOnly),
                ("on_success.on_failure", Some(0), 2, Mode::WorkspaceWrite),
                ("on_success.on_success.on_success", Some(1), 3, Mode::ReadOnly),
            ]
        );
        assert_eq!(widest_mode(&input), Some(Mode::WorkspaceWrite));
        assert_eq!(widest_mode(&json!({"task": "1"})), None);
    }

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
