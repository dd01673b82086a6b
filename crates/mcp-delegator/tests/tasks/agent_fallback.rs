//! Several agents in order of preference: the next one runs only if the first one certainly did nothing.

use std::path::Path;

use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::PROGRAM;

/// A stage whose default agent `codex` is this shell script, with the agents `second` and `missing`.
fn stage(codex: &str) -> Stage {
    let stage = Stage::with_shell_agent(PROGRAM, codex);
    let agents = json!({
        "second": {"protocol": "plain", "command": ["/bin/sh", "-c", "cat >/dev/null; echo second was here; echo x > made"]},
        "missing": {"protocol": "plain", "command": ["/nowhere/agent"]},
    });
    stage.variable("MCP_DELEGATOR_AGENTS", &agents.to_string())
}

/// Runs a task with these agents to its end. Returns the data of its result, and the names of the agents that were skipped.
fn run(stage: &Stage, agents: &[&str]) -> (Value, Vec<String>) {
    let flags = agents.iter().flat_map(|agent| ["--agent", agent]);
    let args: Vec<&str> = ["--mode", "workspace-write"].into_iter().chain(flags).collect();
    let id = stage.exec(&args);
    let waited = stage.wait(&id);
    let details = waited["meta"]["warning_details"].as_array().into_iter().flatten();
    let skipped = details.filter(|warning| warning["code"] == "W_AGENT_002");
    let skipped = skipped.map(|warning| warning["context"]["agent"].as_str().unwrap_or_default().to_owned());
    let skipped = skipped.collect();
    let listed = stage.run_json(&["local", "status", &id])["data"].clone();
    let mut data = waited["data"].clone();
    data["agent"] = listed["agent"].clone();
    (data, skipped)
}

const LIMIT: &str = r#"echo '{"type":"thread.started","thread_id":"t1"}'
echo '{"type":"turn.started"}'
echo '{"type":"turn.failed","error":{"message":"You’ve hit your usage limit. Try again later."}}'
exit 1"#;

#[test]
fn the_next_agent_runs_if_the_first_one_is_out_of_usage_before_its_first_item() {
    let stage = stage(&format!("cat >/dev/null\n{LIMIT}"));
    let (data, skipped) = run(&stage, &["codex", "second"]);
    assert_eq!(
        (&data["state"], &data["final_message"]),
        (&json!("completed"), &json!("second was here")),
        "{data:#}"
    );
    assert_eq!(skipped, ["codex"], "{data:#}");
    assert_eq!(data["metadata"]["file_operations"]["added_files"], json!(["made"]));
}

/// An agent of the Agent Client Protocol that sends the error of its turn as a message first, as claude-acp does.
const ACP_LIMIT: &str = r#"while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/prompt"'*)
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"You have reached your usage limit."}}}}'
      echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32603,"message":"Internal error: You have reached your usage limit.","data":{"errorKind":"rate_limit"}}}'
      continue ;;
    *) result='{"sessionId":"s"}' ;;
  esac
  echo '{"jsonrpc":"2.0","id":'$id',"result":'$result'}'
done"#;

#[test]
fn an_error_that_is_also_sent_as_a_message_is_no_work() {
    let stage = Stage::with_shell_agent(PROGRAM, "exit 99");
    let agents = json!({
        "limited": {"protocol": "acp", "command": ["/bin/sh", "-c", ACP_LIMIT], "unsandboxed": true},
        "second": {"protocol": "plain", "command": ["/bin/sh", "-c", "cat >/dev/null; echo second was here"]},
    });
    let stage = stage.variable("MCP_DELEGATOR_AGENTS", &agents.to_string());
    let (data, skipped) = run(&stage, &["limited", "second"]);
    assert_eq!((&data["state"], skipped), (&json!("completed"), vec!["limited".to_owned()]), "{data:#}");
    stage.run_json(&["queue", "resume", "--agent", "limited"]);
    let args =
        ["local", "run", "x", "--agent", "limited", "--mode", "workspace-write", "--skip-git-repo-check"];
    let failed = stage.world.run(args);
    assert_eq!(failed.json()["error"]["code"], "QUOTA_EXHAUSTED", "{failed:?}");
}

#[test]
fn an_agent_that_may_have_changed_something_is_not_replaced() {
    let item = r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"I begin."}}"#;
    let stage = stage(&format!("cat >/dev/null\necho '{item}'\n{LIMIT}"));
    let (data, skipped) = run(&stage, &["codex", "second"]);
    assert_eq!(data["state"], "failed", "{data:#}");
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "usage_limit");
    assert!(skipped.is_empty());
    assert!(!stage.world.project().join("made").exists());
}

#[test]
fn an_agent_whose_program_is_missing_is_skipped_and_the_last_failure_counts() {
    let stage = stage(&format!("cat >/dev/null\n{LIMIT}"));
    let (data, skipped) = run(&stage, &["missing", "codex", "second"]);
    assert_eq!(data["state"], "completed", "{data:#}");
    assert_eq!(skipped, ["missing", "codex"]);
    // The usage limit has paused codex, so now it is skipped without a try.
    let (data, skipped) = run(&stage, &["codex", "second"]);
    assert_eq!((&data["state"], skipped), (&json!("completed"), vec!["codex".to_owned()]), "{data:#}");
    stage.run_json(&["queue", "resume", "--agent", "codex"]);
    let (data, skipped) = run(&stage, &["missing", "codex"]);
    assert_eq!((&data["state"], skipped), (&json!("failed"), vec!["missing".to_owned()]), "{data:#}");
    let refused = stage.world.run(["local", "exec", "x", "--agent", "missing"]).json();
    assert_eq!(refused["error"]["code"], "DEPENDENCY_MISSING", "{refused}");
}

#[test]
fn a_list_of_agents_is_checked_as_a_whole() {
    let stage = stage("exit 0");
    for (args, field, text) in [
        (&["--agent", "codex", "--agent", "codex"][..], "agent", "twice"),
        (&["--agent", "codex", "--agent", "unknown"], "agent", "is not the name of an agent"),
        (&["--agent", "codex", "--agent", "second", "--model", "m"], "model", "several are given"),
    ] {
        let refused = stage.world.run([&["local", "exec", "x"], args].concat()).json();
        assert_eq!(refused["ok"], false, "{refused}");
        let text_of = refused["error"].to_string();
        assert!(text_of.contains(field) && text_of.contains(text), "{refused}");
    }
}

#[test]
fn a_later_agent_that_can_write_gets_a_restore_point() {
    let stage = stage(&format!("cat >/dev/null\n{LIMIT}"));
    let agents = json!({"open": {
        "protocol": "plain", "unsandboxed": true, "command": ["/bin/sh", "-c", "cat >/dev/null; echo x > made"],
    }});
    let stage = stage.variable("MCP_DELEGATOR_AGENTS", &agents.to_string());
    let run = stage.world.run_as(Path::new("/usr/bin/git"), ["init", "--quiet"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let id = stage.exec(&["--mode", "read-only", "--agent", "codex", "--agent", "open"]);
    let data = &stage.wait(&id)["data"];
    assert!(data["restore_point"].is_object(), "{data:#}");
    let restored = stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(restored["ok"], true, "{restored}");
    assert!(!stage.world.project().join("made").exists());
}
