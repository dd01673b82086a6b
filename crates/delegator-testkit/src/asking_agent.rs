//! A stage whose agent `asker` makes one request and waits for the answer: a shell script that speaks like Claude Code.

use serde_json::{Value, json};

use crate::program::read_text;
use crate::stage::Stage;

/// The agent reads its task, makes this request, stores the response in `answer.json`, and completes.
pub fn stage(program: &str, request: &Value) -> Stage {
    let stage = Stage::with_shell_agent(program, "exit 99");
    let control = json!({"type": "control_request", "request_id": "r1", "request": request});
    stage.world.write("control.json", &format!("{control}\n"));
    let script = format!(
        r#"#!/bin/sh
[ "$1" = --version ] && echo '2.1.325 (Claude Code)' && exit 0
read -r line
echo '{{"type":"system","subtype":"init","session_id":"s1","tools":[],"model":"m"}}'
cat '{}'
read -r answer
printf '%s\n' "$answer" > answer.json
echo '{{"type":"assistant","message":{{"content":[{{"type":"text","text":"done"}}]}},"session_id":"s1"}}'
echo '{{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s1","num_turns":1}}'
cat > /dev/null
"#,
        stage.root().join("control.json").display()
    );
    let agent = stage.write_program("bin/asker", &script);
    let config = format!(
        "[agents.asker]\nprotocol = \"claude-stream\"\ncommand = [\"{}\"]\nunsandboxed = true\n",
        agent.display()
    );
    stage.world.write("home/.config/mcp-delegator/config.toml", &config);
    stage
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

/// Submits a task whose permission requests go to the user.
pub fn exec(stage: &Stage) -> String {
    stage.exec(&["--agent", "asker", "--ask", "--mode", "workspace-write", "--skip-git-repo-check"])
}

/// The response that the agent got.
pub fn response(stage: &Stage) -> Value {
    let stored = read_text(&stage.world.project().join("answer.json"));
    let response: Value = serde_json::from_str(&stored).unwrap_or_else(|error| panic!("{error}: {stored}"));
    response["response"]["response"].clone()
}
