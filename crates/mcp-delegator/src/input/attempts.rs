//! Several attempts at one task in a raw input: `attempts`, `agents` and `models`.

use delegator_domain::task::MAX_ATTEMPTS;
use serde_json::{Value, json};

use crate::error::{ErrorCode, Problem};

/// The inputs that only a group has, each list with the input of a single task that it replaces.
const LISTS: [(&str, &str); 2] = [("agents", "agent"), ("models", "model")];

/// How many attempts an input asks for.
pub fn attempt_count(input: &Value) -> usize {
    let given = input.get("attempts").and_then(Value::as_u64).unwrap_or(1);
    usize::try_from(given.clamp(1, MAX_ATTEMPTS.into())).unwrap_or(1)
}

/// The input of each attempt, as if it had been submitted by itself. A list that is too short is used in turn.
pub fn attempt_inputs(input: &Value) -> Vec<Value> {
    let count = attempt_count(input);
    let attempt = |number: usize| {
        let mut attempt = input.clone();
        if let Some(object) = attempt.as_object_mut() {
            object.shift_remove("attempts");
            LISTS.iter().for_each(|(list, _)| drop(object.shift_remove(*list)));
        }
        for (list, single) in LISTS {
            if let Some(items) = items(input, list) {
                attempt[single] = items[number % items.len()].clone();
            }
        }
        let is_default = input.get("isolation").and_then(Value::as_str) == Some("none");
        if count > 1 {
            attempt["isolation"] = json!("worktree");
        } else if is_default && let Some(object) = attempt.as_object_mut() {
            // The same input as without it, also for an idempotency key.
            object.shift_remove("isolation");
        }
        attempt
    };
    (0..count).map(attempt).collect()
}

/// A problem of one attempt, in terms of what was given: an agent or a model may come from a list.
pub fn problem_of_attempt(problem: Problem, input: &Value, number: usize) -> Problem {
    let list = LISTS.into_iter().find(|(_, single)| *single == problem.field);
    let Some((list, items)) = list.and_then(|(list, _)| Some((list, items(input, list)?))) else {
        return problem;
    };
    let at = number % items.len();
    Problem { field: format!("{list}.{at}"), value: Some(items[at].clone()), ..problem }
}

/// Rules between the inputs of several attempts.
pub fn check_attempts(input: &Value) -> Vec<Problem> {
    let count = attempt_count(input);
    let mut problems = Vec::new();
    for (list, single) in LISTS {
        let Some(items) = items(input, list) else { continue };
        if items.len() > count {
            let message = format!("has {} entries, but {{input:attempts}} is {count}", items.len());
            problems.push(
                Problem::new(ErrorCode::InvalidValue, list, message)
                    .value(input[list].clone())
                    .suggest(Some(format!("Set {{input:attempts}} to {}, or remove entries.", items.len()))),
            );
        }
        if input.get(single).is_some_and(|value| !value.is_null()) {
            let message = format!("cannot be given together with {{input:{single}}}");
            problems.push(Problem::new(ErrorCode::InvalidValue, list, message).value(input[list].clone()));
        }
    }
    if count > 1 && input.get("isolation").and_then(Value::as_str) == Some("none") {
        let message = "must be worktree for several attempts";
        problems.push(
            Problem::new(ErrorCode::InvalidValue, "isolation", message)
                .value("none".into())
                .suggest(Some("Remove {input:isolation}: each attempt gets a worktree of its own.")),
        );
    }
    problems
}

/// The entries of a list that is not empty.
fn items<'a>(input: &'a Value, list: &str) -> Option<&'a Vec<Value>> {
    input.get(list).and_then(Value::as_array).filter(|items| !items.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_list_is_used_in_turn() {
        let input = json!({"task": "x", "attempts": 3, "agents": ["a", "b"], "models": ["m"]});
        let attempts = attempt_inputs(&input);
        let expected = |agent| json!({"task": "x", "agent": agent, "model": "m", "isolation": "worktree"});
        assert_eq!(attempts, [expected("a"), expected("b"), expected("a")]);
    }

    #[test]
    fn one_attempt_is_an_ordinary_task() {
        assert_eq!(attempt_inputs(&json!({"task": "x", "attempts": 1})), [json!({"task": "x"})]);
        assert_eq!(attempt_inputs(&json!({"task": "x", "isolation": "none"})), [json!({"task": "x"})]);
    }

    #[test]
    fn a_problem_of_an_attempt_names_the_entry_of_the_list() {
        let input = json!({"attempts": 3, "agents": ["a", "b"], "model": "m"});
        let problem = |field: &str| Problem::new(ErrorCode::InvalidValue, field, "is wrong");
        let of_agent = problem_of_attempt(problem("agent"), &input, 1);
        assert_eq!((of_agent.field.as_str(), of_agent.value), ("agents.1", Some(json!("b"))));
        assert_eq!(problem_of_attempt(problem("agent"), &input, 2).field, "agents.0");
        assert_eq!(problem_of_attempt(problem("model"), &input, 1), problem("model"));
        assert_eq!(problem_of_attempt(problem("agent"), &json!({}), 0), problem("agent"));
    }

    #[test]
    fn contradictions_are_problems() {
        let fields = |input: Value| -> Vec<String> {
            check_attempts(&input).into_iter().map(|problem| problem.field).collect()
        };
        assert_eq!(fields(json!({"attempts": 2, "agents": ["a", "b", "c"]})), ["agents"]);
        assert_eq!(fields(json!({"agents": ["a", "b"]})), ["agents"]);
        assert_eq!(fields(json!({"attempts": 2, "models": ["a"], "model": "b"})), ["models"]);
        assert_eq!(fields(json!({"attempts": 2, "isolation": "none"})), ["isolation"]);
        assert_eq!(fields(json!({"attempts": 1, "isolation": "none"})), [""; 0]);
        assert_eq!(fields(json!({"attempts": 4, "agents": ["a"], "isolation": "worktree"})), [""; 0]);
    }
}
