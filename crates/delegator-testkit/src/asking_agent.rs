//! A stage whose agent `asker` makes one request and waits for the answer: a shell script that speaks like Claude Code.

use serde_json::{Value, json};

use crate::program::{World, read_text};
use crate::stage::Stage;

/// A stage whose agent `asker` makes this request.
pub fn stage(program: &str, request: &Value) -> Stage {
    let stage = Stage::with_shell_agent(program, "exit 99");
    install(&stage.world, request);
    stage
}

/// Configures the agent. It reads its task, makes this request, stores the response in `answer.json`, and completes.
pub fn install(world: &World, request: &Value) {
    let root = world.home().parent().expect("a home in a folder").to_owned();
    let control = json!({"type": "control_request", "request_id": "r1", "request": request});
    world.write("control.json", &format!("{control}\n"));
    let script = format!(
        r#"#!/bin/sh
[ "$1" = --version ] && echo '2.1.325 (Claude Code)' && exit 0
echo "$DELEGATOR_TASK" >> "$HOME/../starts"
read -r line
echo '{{"type":"system","subtype":"init","session_id":"s1","tools":[],"model":"m"}}'
cat '{}'
read -r answer
printf '%s\n' "$answer" > answer.json
echo '{{"type":"assistant","message":{{"content":[{{"type":"text","text":"done"}}]}},"session_id":"s1"}}'
echo '{{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s1","num_turns":1}}'
cat > /dev/null
"#,
        root.join("control.json").display()
    );
    world.write("bin/asker", &script);
    let config = format!(
        "[agents.asker]\nprotocol = \"claude-stream\"\ncommand = [\"/bin/sh\", \"{}\"]\nunsandboxed = true\n",
        root.join("bin/asker").display()
    );
    world.write("home/.config/mcp-delegator/config.toml", &config);
}

/// The agent wants to run `make all`.
pub fn permission_request() -> Value {
    json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "make all"}})
}

/// The agent wants to know which colour to use.
pub fn question_request() -> Value {
    let options = json!([{"label": "Blue", "description": "calm"}, {"label": "Red", "description": "loud"}]);
    let question =
        json!({"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": false});
    json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": {"questions": [question]}})
}

/// The inputs of a task of this agent whose permission requests go to the user.
pub const TASK_ARGS: [&str; 6] =
    ["--agent", "asker", "--ask", "--mode", "workspace-write", "--skip-git-repo-check"];

/// Submits a task whose permission requests go to the user.
pub fn exec(stage: &Stage) -> String {
    stage.exec(&TASK_ARGS)
}

/// The response that the agent got.
pub fn response(stage: &Stage) -> Value {
    let stored = read_text(&stage.world.project().join("answer.json"));
    let response: Value = serde_json::from_str(&stored).unwrap_or_else(|error| panic!("{error}: {stored}"));
    response["response"]["response"].clone()
}
