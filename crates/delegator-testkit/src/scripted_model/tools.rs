//! The tools that agents offer, and calls of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

use super::Action;
use super::conversation::Api;

/// The names of tools that run a command, of agents that the tests run.
const SHELLS: [&str; 6] = ["exec_command", "Bash", "bash", "run_shell_command", "shell", "execute_command"];
/// The names of tools that write a whole file.
const WRITERS: [&str; 5] = ["Write", "write", "write_file", "create_file", "text_editor"];

#[derive(Debug)]
pub(super) struct Tool {
    name: String,
    parameters: Vec<String>,
}

/// The tools of a request.
pub(super) fn offered(request: &Value) -> Vec<Tool> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools
        .filter_map(|tool| {
            let function = if tool["function"].is_object() { &tool["function"] } else { tool };
            let schema =
                [&function["parameters"], &function["input_schema"]].into_iter().find(|it| it.is_object());
            let properties = schema.and_then(|schema| schema["properties"].as_object());
            let parameters = properties.map(|it| it.keys().cloned().collect()).unwrap_or_default();
            Some(Tool { name: function["name"].as_str()?.to_owned(), parameters })
        })
        .collect()
}

/// A call of the tool that does this. Panics in the server's thread if the agent offers none.
pub(super) fn call(api: Api, offered: &[Tool], action: &Action, index: usize) -> Value {
    let find = |names: &[&str]| names.iter().find_map(|name| offered.iter().find(|tool| tool.name == *name));
    let id = format!("call_{}", next_call());
    let (tool, values) = match action {
        Action::Run(command) => {
            let values = json!({"command": command, "cmd": command, "description": "a command of the script", "is_background": false, "yield_time_ms": 30_000});
            (find(&SHELLS), values)
        }
        Action::RunUnsandboxed(command) => {
            let values = json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "the test needs it"});
            (find(&SHELLS), values)
        }
        Action::WriteFile { path, text } => {
            let path = path.display().to_string();
            if find(&WRITERS).is_none() && offered.iter().any(|tool| tool.name == "apply_patch") {
                let mut call = crate::fake_model::patch(&patch(&path, text));
                call["call_id"] = json!(id);
                return call;
            }
            let values = json!({"file_path": path, "filePath": path, "path": path, "content": text, "file_text": text});
            (find(&WRITERS), values)
        }
        Action::Say(_) | Action::Fail { .. } | Action::Hold => return Value::Null,
    };
    let tool = tool.unwrap_or_else(|| panic!("no tool for {action:?} among {offered:?}"));
    let is_known = |(name, _): &(&String, &Value)| tool.parameters.contains(name);
    let given = values.as_object().into_iter().flatten().filter(is_known);
    let arguments: Map<String, Value> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
    match api {
        Api::Responses => json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": tool.name,
            "arguments": json!(arguments).to_string(),
        }),
        Api::Messages => {
            json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": tool.name, "input": arguments})
        }
        Api::Chat => json!({"tool_calls": [{
            "index": index, "id": id, "type": "function",
            "function": {"name": tool.name, "arguments": json!(arguments).to_string()},
        }]}),
    }
}

fn patch(path: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")
}

/// Each call has its own id, by which agents find its result.
fn next_call() -> usize {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    CALLS.fetch_add(1, Ordering::SeqCst)
}
