//! Prompts that a user can select in a client; only those whose tools are served.

use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

use crate::mcp::tools::toolbox::Toolbox;

/// The modes that `delegate` accepts.
pub const MODES: [&str; 2] = ["read-only", "workspace-write"];

/// The tools that a prompt asks the model to call.
const REQUIRED_TOOLS: [(&str, &[&str]); 2] =
    [("delegate", &["local_exec", "local_wait"]), ("review_results", &["local_results"])];

fn is_served(name: &str, toolbox: &Toolbox) -> bool {
    let is_served = |tools: &[&str]| tools.iter().all(|tool| toolbox.serves(tool));
    REQUIRED_TOOLS.iter().any(|(known, tools)| *known == name && is_served(tools))
}

pub fn list(toolbox: &Toolbox) -> Vec<Prompt> {
    let argument = |name: &str, about: &str, required: bool| {
        PromptArgument::new(name).with_description(about).with_required(required)
    };
    let all = vec![
        Prompt::new(
            "delegate",
            Some("Delegate a coding task to an agent, wait for it, and check its work"),
            Some(vec![
                argument("task", "The task", true),
                argument("working_dir", "Absolute path of the project", false),
                argument("mode", "read-only or workspace-write (default: the model decides)", false),
            ]),
        ),
        Prompt::new(
            "review_results",
            Some("Review the work of a finished task"),
            Some(vec![argument("task_id", "The task id", true)]),
        ),
    ];
    all.into_iter().filter(|prompt| is_served(&prompt.name, toolbox)).collect()
}

/// The messages of a prompt, or the problem with its arguments; `None` for an unknown prompt.
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
    let message = match (name, text("mode")) {
        ("delegate", Some(mode)) if !MODES.contains(&mode) => {
            Err(format!("has no mode {mode:?}, only {}", MODES.join(" and ")))
        }
        ("delegate", mode) => text("task")
            .map(|task| delegate(task, text("working_dir"), mode, prefix))
            .ok_or_else(|| "needs task".to_owned()),
        _ => text("task_id").map(|id| review(id, prefix)).ok_or_else(|| "needs task_id".to_owned()),
    };
    Some(message.map(|text| GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])))
}

fn delegate(task: &str, working_dir: Option<&str>, mode: Option<&str>, prefix: &str) -> String {
    let location = working_dir.map(|dir| format!(" in {dir}")).unwrap_or_default();
    let mode = mode.unwrap_or("workspace-write if files have to be changed, else read-only");
    format!(
        "Delegate this task with {prefix}local_exec (mode {mode}){location}, then call {prefix}local_wait until it returns \
         the result. Inspect the changed files yourself before you report. If it failed, explain why and what you \
         suggest; do not start it again without asking me.\n\nThe task:\n{task}"
    )
}

fn review(task_id: &str, prefix: &str) -> String {
    format!(
        "Call {prefix}local_results with task_id {task_id} and include_output true. Summarise in a few sentences what was \
         changed, what was tested with what result, and what is left to do. Compare the agent's report with the \
         files it names, and point out every claim that the files do not confirm."
    )
}
