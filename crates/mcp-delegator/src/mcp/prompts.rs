//! Prompts a user can pick in a host; only those whose tools are served.

use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

use super::toolbox::Toolbox;

/// What `delegate` takes for a mode.
pub const MODES: [&str; 2] = ["read-only", "workspace-write"];

/// What a prompt makes the model call.
const REQUIRED_TOOLS: [(&str, &[&str]); 2] =
    [("delegate", &["local_exec", "local_wait", "local_results"]), ("review_results", &["local_results"])];

fn is_served(name: &str, toolbox: &Toolbox) -> bool {
    let needs = REQUIRED_TOOLS.iter().find(|(known, _)| *known == name);
    needs.is_some_and(|(_, tools)| tools.iter().all(|tool| toolbox.serves(tool)))
}

/// All there are here.
pub fn list(toolbox: &Toolbox) -> Vec<Prompt> {
    let argument = |name: &str, about: &str, required: bool| {
        PromptArgument::new(name).with_description(about).with_required(required)
    };
    let all = vec![
        Prompt::new(
            "delegate",
            Some("Hand a coding task to an agent, wait for it, and check what it did"),
            Some(vec![
                argument("task", "What shall be done", true),
                argument("working_dir", "Absolute path of the project", false),
                argument("mode", "read-only or workspace-write; without it the model decides", false),
            ]),
        ),
        Prompt::new(
            "review_results",
            Some("Look at what a finished task did, and say whether it can be relied on"),
            Some(vec![argument("task_id", "The task", true)]),
        ),
    ];
    all.into_iter().filter(|prompt| is_served(&prompt.name, toolbox)).collect()
}

/// The messages of a prompt; what is wrong with its arguments; or nothing for a prompt nobody knows.
pub fn get(
    name: &str,
    given: &Map<String, Value>,
    toolbox: &Toolbox,
) -> Option<Result<GetPromptResult, String>> {
    if !is_served(name, toolbox) {
        return None;
    }
    let text = |key: &str| given.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let prefix = toolbox.prefix();
    let words = match (name, text("mode")) {
        ("delegate", Some(mode)) if !MODES.contains(&mode) => {
            Err(format!("knows no mode {mode:?}, only {}", MODES.join(" and ")))
        }
        ("delegate", mode) => text("task")
            .map(|task| delegate(task, text("working_dir"), mode, prefix))
            .ok_or_else(|| "needs task".to_owned()),
        _ => text("task_id").map(|id| review(id, prefix)).ok_or_else(|| "needs task_id".to_owned()),
    };
    Some(words.map(|words| GetPromptResult::new(vec![PromptMessage::new_text(Role::User, words)])))
}

fn delegate(task: &str, working_dir: Option<&str>, mode: Option<&str>, prefix: &str) -> String {
    let place = working_dir.map(|dir| format!(" in {dir}")).unwrap_or_default();
    let mode = match mode {
        Some(mode) => format!("mode {mode}"),
        None => "mode workspace-write if files have to be changed, else read-only".to_owned(),
    };
    format!(
        "Delegate this task with {prefix}local_exec ({mode}){place}, then call {prefix}local_wait until it has \
         ended and {prefix}local_results to see what it did. Look at the changed files yourself before you report. If it \
         failed, say why and what you suggest; do not start it again without asking.\n\nThe task:\n{task}"
    )
}

fn review(task_id: &str, prefix: &str) -> String {
    format!(
        "Call {prefix}local_results with task_id {task_id} and include_output true. Say in a few sentences what was \
         changed, what was tested and with what outcome, and what is left open. Compare the agent's words with the \
         files it names, and point out every claim that the files do not bear out."
    )
}
