//! Translates the inputs of Codex's tools to our inputs, and our validation problems back to Codex's input
//! names.

use std::path::Path;

use delegator_domain::agents::DEFAULT_AGENT;
use delegator_domain::task::Mode;
use serde_json::{Map, Value};

use crate::error::{ErrorCode, Problem, suggest_nearest};
use crate::mcp::codex_compat::{APPROVAL_POLICIES, CONFIG_SETTINGS, CompatTool};

/// Codex's input name and ours. If two of Codex's names map to one of ours, the first is the current one.
const INPUT_NAMES: [(&str, &str); 7] = [
    ("prompt", "task"),
    ("cwd", "working_dir"),
    ("sandbox", "mode"),
    ("model", "model"),
    ("profile", "profile"),
    ("threadId", "thread_id"),
    ("conversationId", "thread_id"),
];

const APPROVAL: &str = "approval-policy";
const CONFIG: &str = "config";
const DEVELOPER: &str = "developer-instructions";

fn known_inputs(tool: CompatTool) -> &'static [&'static str] {
    match tool {
        CompatTool::Codex => &["prompt", "cwd", "sandbox", "model", "profile", APPROVAL, DEVELOPER, CONFIG],
        CompatTool::Reply => &["threadId", "conversationId", "prompt"],
    }
}

/// A call with our input names, and its problems with Codex's input names.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TranslatedCall {
    pub object: Map<String, Value>,
    pub problems: Vec<Problem>,
}

pub(super) fn translate(
    tool: CompatTool,
    mut given: Map<String, Value>,
    current_dir: &Path,
) -> TranslatedCall {
    let mut call = TranslatedCall::default();
    let unknown: Vec<String> =
        given.keys().filter(|key| !known_inputs(tool).contains(&key.as_str())).cloned().collect();
    for key in unknown {
        given.shift_remove(&key);
        call.problems.push(unknown_input_problem(tool, &key));
    }
    if let Some(config) = given.shift_remove(CONFIG) {
        call.apply_config(config);
    }
    if let Some(policy) = given.shift_remove(APPROVAL) {
        call.problems.extend(approval_problem(APPROVAL, &policy));
    }
    let instructions = given.shift_remove(DEVELOPER);
    // In reverse order, so that the current name overrides a former one.
    for (codex_name, our_name) in INPUT_NAMES.into_iter().rev() {
        if let Some(value) = given.shift_remove(codex_name) {
            call.object.insert(our_name.to_owned(), value);
        }
    }
    if tool == CompatTool::Reply && !call.object.contains_key("thread_id") {
        let missing = Problem::new(ErrorCode::MissingArgument, "threadId", "is missing");
        call.problems.push(missing.suggest(Some("Use the threadId from the result of codex.")));
    }
    call.prepend_instructions(instructions);
    // The defaults of Codex's tool, whatever the configuration chooses for tasks of ours.
    if tool == CompatTool::Codex {
        call.object.entry("mode").or_insert_with(|| Mode::ReadOnly.name().into());
        call.object.insert("agent".to_owned(), DEFAULT_AGENT.into());
    }
    // Codex requires a git repository only in its CLI, not in its server.
    call.object.insert("skip_git_repo_check".to_owned(), true.into());
    if let Some(Value::String(dir)) = call.object.get_mut("working_dir") {
        *dir = current_dir.join(&*dir).display().to_string();
    }
    call
}

impl TranslatedCall {
    fn apply_config(&mut self, config: Value) {
        let Value::Object(config) = config else {
            let problem = Problem::new(ErrorCode::InvalidValue, CONFIG, "is not an object").value(config);
            self.problems.push(problem);
            return;
        };
        for (key, value) in config {
            let field = format!("{CONFIG}.{key}");
            match CONFIG_SETTINGS.iter().find(|(codex_name, _)| *codex_name == key) {
                Some((_, our_name)) => drop(self.object.insert((*our_name).to_owned(), value)),
                None if key == "approval_policy" => self.problems.extend(approval_problem(&field, &value)),
                None => self.problems.push(
                    Problem::new(ErrorCode::Unsupported, field, "cannot be set in a call")
                        .suggest(Some("Set it in Codex's own config.toml, or in a profile there.")),
                ),
            }
        }
    }

    fn prepend_instructions(&mut self, instructions: Option<Value>) {
        match (instructions, self.object.get_mut("task")) {
            (Some(Value::String(instructions)), Some(Value::String(prompt))) if !prompt.trim().is_empty() => {
                *prompt = format!("{instructions}\n\n{prompt}");
            }
            (Some(Value::String(_)) | None, _) => {}
            (Some(other), _) => {
                let problem = Problem::new(ErrorCode::InvalidValue, DEVELOPER, "is not a string");
                self.problems.push(problem.value(other));
            }
        }
    }
}

fn approval_problem(field: &str, policy: &Value) -> Option<Problem> {
    match policy.as_str() {
        Some(name) if APPROVAL_POLICIES.contains(&name) => None,
        Some("untrusted") => {
            let problem = "cannot be untrusted: approval requests are not supported";
            let next = "Use never, with sandbox read-only if commands are not to change anything.";
            Some(Problem::new(ErrorCode::Unsupported, field, problem).suggest(Some(next)))
        }
        _ => {
            let problem = format!("is not one of {}", APPROVAL_POLICIES.join(", "));
            Some(Problem::new(ErrorCode::InvalidValue, field, problem).value(policy.clone()))
        }
    }
}

fn unknown_input_problem(tool: CompatTool, key: &str) -> Problem {
    if matches!(key, "base-instructions" | "compact-prompt") && tool == CompatTool::Codex {
        return Problem::new(ErrorCode::Unsupported, key, "cannot be set in a call")
            .suggest(Some(format!("Leave it out, or use {DEVELOPER}.")));
    }
    Problem::new(ErrorCode::UnknownFlag, key, "is not an input of this tool")
        .suggest(Some(suggest_nearest(key, known_inputs(tool).iter().copied())))
}

pub(super) fn rename_to_codex_input(mut problem: Problem) -> Problem {
    if let Some((codex_name, _)) = INPUT_NAMES.iter().find(|(_, our_name)| *our_name == problem.field) {
        problem.field = (*codex_name).to_owned();
        // These tools do not have our other inputs.
        problem.permitted_by = None;
    }
    problem
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn translate_json(tool: CompatTool, given: Value) -> TranslatedCall {
        translate(tool, given.as_object().cloned().unwrap(), Path::new("/here"))
    }

    fn problem_fields(given: Value) -> Vec<String> {
        translate_json(CompatTool::Codex, given).problems.into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn every_codex_input_is_translated() {
        let codex = translate_json(
            CompatTool::Codex,
            json!({"prompt": "p", "cwd": "sub", "sandbox": "workspace-write", "model": "m", "approval-policy": "on-request",
                "developer-instructions": "d", "config": {"model": "other", "model_reasoning_effort": "high"}}),
        );
        assert_eq!(codex.problems, []);
        let expected = json!({"task": "d\n\np", "working_dir": "/here/sub", "mode": "workspace-write", "model": "m",
            "reasoning_effort": "high", "skip_git_repo_check": true, "agent": "codex"});
        assert_eq!(Value::Object(codex.object), expected);
        let reply =
            translate_json(CompatTool::Reply, json!({"prompt": "p", "threadId": "t", "conversationId": "c"}));
        assert_eq!(
            Value::Object(reply.object),
            json!({"task": "p", "thread_id": "t", "skip_git_repo_check": true})
        );
    }

    #[test]
    fn unsupported_inputs_are_refused() {
        assert_eq!(problem_fields(json!({"prompt": "p", "base-instructions": "b"})), ["base-instructions"]);
        assert_eq!(
            problem_fields(json!({"prompt": "p", "approval-policy": "untrusted"})),
            ["approval-policy"]
        );
        assert_eq!(
            problem_fields(
                json!({"prompt": "p", "config": {"approval_policy": "untrusted", "mcp_servers": {}}, "cdw": "/"})
            ),
            ["cdw", "config.approval_policy", "config.mcp_servers"]
        );
        assert_eq!(
            problem_fields(json!({"prompt": "p", "config": 1, "approval-policy": "sometimes"})).len(),
            2
        );
    }
}
