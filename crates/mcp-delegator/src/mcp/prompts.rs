//! Prompts a user can pick in a host.

use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

/// All there are.
pub fn list() -> Vec<Prompt> {
    let argument = |name: &str, about: &str, required: bool| {
        PromptArgument::new(name).with_description(about).with_required(required)
    };
    vec![
        Prompt::new(
            "delegate",
            Some("Hand a coding task to an agent, wait for it, and check what it did"),
            Some(vec![
                argument("task", "What shall be done", true),
                argument("working_dir", "Absolute path of the project", false),
                argument("mode", "read-only or workspace-write", false),
            ]),
        ),
        Prompt::new(
            "review_results",
            Some("Look at what a finished task did, and say whether it can be relied on"),
            Some(vec![argument("task_id", "The task", true)]),
        ),
    ]
}

/// The messages of a prompt; the name of what is missing, or nothing for a prompt nobody knows.
pub fn get(
    name: &str,
    given: &Map<String, Value>,
    prefix: &str,
) -> Option<Result<GetPromptResult, &'static str>> {
    let text = |key: &str| given.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let words = match name {
        "delegate" => {
            text("task").map(|task| delegate(task, text("working_dir"), text("mode"), prefix)).ok_or("task")
        }
        "review_results" => text("task_id").map(|id| review(id, prefix)).ok_or("task_id"),
        _ => return None,
    };
    Some(words.map(|words| GetPromptResult::new(vec![PromptMessage::new_text(Role::User, words)])))
}

fn delegate(task: &str, working_dir: Option<&str>, mode: Option<&str>, prefix: &str) -> String {
    let place = working_dir.map(|dir| format!(" in {dir}")).unwrap_or_default();
    let mode = mode.unwrap_or("workspace-write");
    format!(
        "Delegate this task with {prefix}local_exec (mode {mode}){place}, then call {prefix}local_wait until it has \
         ended and {prefix}local_results to see what it did. Look at the changed files yourself before you report. If it \
         failed, say why and what you suggest; do not start it again without asking.\n\nThe task:\n{task}"
    )
}

fn review(task_id: &str, prefix: &str) -> String {
    format!(
        "Call {prefix}local_results with task_id {task_id} and include_output true. Say in a few sentences what was asked, \
         what was changed, what was tested and with what outcome, and what is left open. Compare the agent's words with the \
         files it names, and point out every claim that the files do not bear out."
    )
}
