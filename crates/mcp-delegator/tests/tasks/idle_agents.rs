//! Agents of the protocol `idle-jsonl`: a shell script that reads messages and reports when it is idle, from submission to its
//! results.

use delegator_testkit::stage::{Stage, task_processes, wait_until};
use serde_json::json;

use crate::PROGRAM;

/// A stage with the agent `chat`, which is this shell script.
fn stage_with_chat(script: &str, settings: &str) -> Stage {
    let stage = Stage::with_shell_agent(PROGRAM, "exit 99");
    let chat = stage.write_program("bin/chat", &format!("#!/bin/sh\n{script}\n"));
    let config =
        format!("[agents.chat]\nprotocol = \"idle-jsonl\"\ncommand = [\"{}\"]\n{settings}\n", chat.display());
    stage.world.write("home/.config/mcp-delegator/config.toml", &config);
    stage
}

fn exec(stage: &Stage, task: &str) -> String {
    let run = stage.run_json(&["local", "exec", task, "--agent", "chat", "--skip-git-repo-check"]);
    run["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned()
}

/// Answers each message with its text, and is idle after each.
const ECHO: &str = r#"while read -r line; do
  printf '{"type":"agent_message","content":%s}\n' "$(printf %s "$line" | sed 's/.*"content"://; s/}$//')"
  printf '{"type":"file_change","path":"notes.txt","action":"write"}\n{"type":"idle"}\n'
done"#;

#[test]
fn the_task_is_its_first_message_and_idle_ends_it() {
    let stage = stage_with_chat(ECHO, "");
    let id = exec(&stage, "first line\nsecond \"line\"");
    let waited = stage.wait(&id);
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    assert_eq!(waited["data"]["final_message"], "first line\nsecond \"line\"", "{waited}");
    let stored = &stage.run_json(&["logs", &id])["data"]["stdout"];
    let sent = r#"{"sent":{"type":"tool_result","content":"first line\nsecond \"line\""}}"#;
    assert!(stored.as_str().is_some_and(|stored| stored.starts_with(sent)), "{stored}");
    let normalized = stage.run_json(&["events", "normalize", &id, "--format", "json"]);
    let kinds: Vec<_> =
        normalized["data"]["events"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
    let expected = ["thread.started", "turn.started", "item.completed", "item.completed", "turn.completed"]
        .map(|it| json!(it));
    assert_eq!(kinds, expected.iter().collect::<Vec<_>>(), "{normalized}");
}

#[test]
fn an_agent_that_never_exits_is_ended_after_its_turn() {
    let script = format!("trap '' TERM\n{ECHO}\nwhile :; do sleep 600; done");
    let stage = stage_with_chat(&script, "").variable("MCP_DELEGATOR_TERMINATE_GRACE_SEC", "1");
    let id = exec(&stage, "hello");
    let waited = stage.wait(&id);
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    assert_eq!(waited["data"]["final_message"], "hello");
    assert_eq!(task_processes(&id), Vec::<i32>::new(), "nothing is left");
}

#[test]
fn done_is_success_and_an_end_in_the_middle_of_a_turn_is_not() {
    let stage = stage_with_chat("read -r line; echo '{\"type\":\"done\"}'", "");
    let waited = stage.wait(&exec(&stage, "x"));
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    let half = "read -r line; echo '{\"type\":\"agent_message\",\"content\":\"half\"}'";
    let stage = stage_with_chat(half, "");
    let waited = stage.wait(&exec(&stage, "x"));
    assert_eq!(waited["data"]["state"], "failed", "{waited}");
    assert_eq!(waited["data"]["final_message"], "half", "{waited}");
}

/// It reports `idle` before it has read the task.
#[test]
fn an_agent_that_is_idle_from_the_start_still_gets_its_task() {
    let stage = stage_with_chat(&format!("echo '{{\"type\":\"idle\"}}'\n{ECHO}"), "");
    let waited = stage.wait(&exec(&stage, "late"));
    assert_eq!(
        (&waited["data"]["state"], &waited["data"]["final_message"]),
        (&json!("completed"), &json!("late"))
    );
}

#[test]
fn a_cancelled_agent_leaves_nothing_behind() {
    let stage = stage_with_chat(
        "read -r line; setsid sleep 600 & echo '{\"type\":\"agent_message\",\"content\":\"hm\"}'; cat",
        "",
    );
    let id = exec(&stage, "x");
    wait_until("the agent works", || {
        stage.run_json(&["logs", &id])["data"]["stdout"].to_string().contains("hm")
    });
    stage.run_json(&["local", "cancel", &id]);
    let waited = stage.wait(&id);
    assert_eq!(waited["data"]["state"], "cancelled", "{waited}");
    assert_eq!(task_processes(&id), Vec::<i32>::new());
}
