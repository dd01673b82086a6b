//! A task of a plain agent through MCP tools.

use delegator_testkit::stage::Stage;
use serde_json::json;

use crate::PROGRAM;
use crate::client::{Client, V2025_06, text};

#[test]
fn a_task_runs_with_the_agent_that_it_names() {
    let stage = Stage::with_shell_agent(PROGRAM, "exit 99")
        .variable("MCP_DELEGATOR_AGENTS", r#"{"echo": {"protocol": "plain", "command": ["/bin/cat"]}}"#);
    let mut client = Client::connect(&stage, V2025_06);
    let run = client.envelope("_codex_local_run", json!({"task": "say\nthis", "agent": "echo"}));
    assert_eq!(run["data"]["final_message"], "say\nthis", "{run}");
    let id = run["data"]["task_id"].as_str().unwrap();
    let resumed = client.call("_codex_local_resume", json!({"task": "go on", "task_id": id}));
    assert!(resumed["isError"] == true && text(&resumed).contains("echo"), "{resumed}");
    let unknown = client.call("_codex_local_exec", json!({"task": "x", "agent": "ecco"}));
    assert!(unknown["isError"] == true && text(&unknown).contains("Did you mean echo?"), "{unknown}");
}
