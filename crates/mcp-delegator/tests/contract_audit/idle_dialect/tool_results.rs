//! Results of tool calls, which are written back to the agent.

use delegator_testkit::program::read_text;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::row::{Section, works};

/// Calls a tool, stores the line that it reads then, and is done.
const CALLER: &str = r#"#!/bin/sh
read -r task
printf '{"type":"tool_call","name":"look_up","call_id":"c1","arguments":{"key":"colour"}}\n'
read -r result
printf '%s\n' "$result" > result.json
printf '{"type":"agent_message","content":"thanks"}\n{"type":"done"}\n'
"#;

/// What the agent reads after its call, if this shell command is its tool command.
fn written_back(tool: &str) -> Value {
    let stage = Stage::with_shell_agent(PROGRAM, "exit 99");
    let agent = stage.write_program("bin/chat", CALLER);
    let tool = stage.write_program("bin/tool", &format!("#!/bin/sh\ncat > call.json\n{tool}\n"));
    let config = format!(
        "[agents.chat]\nprotocol = \"idle-jsonl\"\ncommand = [\"{}\"]\ntool_command = [\"{}\"]\nunsandboxed = true\n",
        agent.display(),
        tool.display()
    );
    stage.world.write("home/.config/mcp-delegator/config.toml", &config);
    stage.run_json(&["local", "run", "x", "--agent", "chat", "--skip-git-repo-check"]);
    serde_json::from_str(&read_text(&stage.world.project().join("result.json"))).unwrap()
}

pub(crate) const SECTIONS: &[Section] = &[Section {
    heading: "Tool results",
    rows: &[works(
        38,
        "`tool_result{call_id, output, error}` is written back to the agent for its `tool_call`",
        "The output of the configured command with the id of the call; of a command that fails, what it prints on stderr as \
         `error`",
        || {
            let output = json!({"type": "tool_result", "call_id": "c1", "output": "blue"});
            assert_eq!(written_back("printf blue"), output);
            let error = json!({"type": "tool_result", "call_id": "c1", "output": "", "error": "no such key"});
            assert_eq!(written_back("echo 'no such key' >&2; exit 3"), error);
        },
    )],
}];
