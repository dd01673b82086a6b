//! Agents of the protocol `idle-jsonl`: a shell script that reads messages and reports when it is idle, from submission to its
//! results.

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, task_processes, wait_until};
use serde_json::{Value, json};

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

#[test]
fn all_messages_that_are_queued_by_then_follow_one_idle() {
    // It reads three messages before it says anything.
    let script = r#"read -r task
echo '{"type":"agent_message","content":"ready"}'
while [ ! -e gate ]; do sleep 0.05; done
echo '{"type":"idle"}'
read -r a; read -r b; read -r c
printf '%s\n' "$a" "$b" "$c" > read.txt
printf '{"type":"agent_message","content":"three"}\n{"type":"idle"}\n'"#;
    let stage = stage_with_chat(script, "unsandboxed = true");
    let id = exec(&stage, "x");
    for text in ["one", "two\nlines", "three"] {
        stage.run_json(&["send", &id, text]);
    }
    std::fs::write(stage.world.project().join("gate"), "").unwrap();
    let waited = stage.wait(&id);
    assert_eq!(waited["data"]["final_message"], "three", "{waited}");
    assert_eq!(waited["data"]["messages"]["accepted_count"], 3, "{waited}");
    let read = read_text(&stage.world.project().join("read.txt"));
    let contents = ["one", "two\\nlines", "three"];
    let expected = contents.map(|text| format!("{{\"type\":\"tool_result\",\"content\":\"{text}\"}}\n"));
    assert_eq!(read, expected.concat());
}

/// Calls a tool, stores the result that it reads, and is done.
const CALLER: &str = r#"read -r task
echo '{"type":"tool_call","name":"look_up","call_id":"c1","arguments":{"key":"colour"}}'
read -r result
printf '%s\n' "$result" > result.json
echo '{"type":"agent_message","content":"thanks"}'
echo '{"type":"done"}'"#;

fn result(stage: &Stage) -> Value {
    serde_json::from_str(&read_text(&stage.world.project().join("result.json"))).unwrap()
}

#[test]
fn a_tool_call_is_answered_from_the_command_line() {
    let answers: [(&[&str], Value); 2] = [
        (&["blue\nand red"], json!({"type": "tool_result", "call_id": "c1", "output": "blue\nand red"})),
        (
            &["--option", "error", "--text", "unknown key"],
            json!({"type": "tool_result", "call_id": "c1", "output": "", "error": "unknown key"}),
        ),
    ];
    for (answer, expected) in answers {
        let stage = stage_with_chat(CALLER, "unsandboxed = true");
        let id = exec(&stage, "x");
        let mut open = Value::Null;
        wait_until("the agent calls the tool", || {
            open = stage.run_json(&["local", "status"])["data"]["tasks"][0]["waiting_for_answer"][0].clone();
            open.is_object()
        });
        assert!(open["title"].as_str().unwrap().contains("look_up"), "{open}");
        assert!(open["detail"].as_str().unwrap().contains("colour"), "{open}");
        let answered = stage.run_json(&[&["answer", &id], answer].concat());
        assert_eq!(answered["data"]["state"], "answered", "{answered}");
        let waited = stage.wait(&id);
        assert_eq!(waited["data"]["state"], "completed", "{waited}");
        assert_eq!(result(&stage), expected);
        let normalized = stage.run_json(&["events", "normalize", &id, "--format", "json"]);
        let events = normalized["data"]["events"].as_array().unwrap();
        let ended = events.iter().find(|it| it["type"] == "item.completed").unwrap();
        let status = if expected.get("error").is_some() { "failed" } else { "completed" };
        assert_eq!((&ended["item"]["tool"], &ended["item"]["status"]), (&json!("look_up"), &json!(status)));
    }
}

#[test]
fn a_configured_command_answers_tool_calls() {
    for (command, output, error) in [
        ("cat > call.json; printf 'blue\\n'", "blue\n", None),
        ("cat > call.json; echo partial; echo 'no such key' >&2; exit 3", "", Some("no such key")),
        ("exit 4", "", Some("the tool command ended with exit code 4")),
        ("cat > call.json; yes", "", Some("the tool command printed more than 1048576 bytes")),
        ("cat > call.json; sleep 600 & sleep 600", "", Some("the tool command took longer than 1 s")),
    ] {
        let script = command.replace('\\', "\\\\").replace('"', "\\\"");
        let tool = format!("unsandboxed = true\ntool_command = [\"sh\", \"-c\", \"{script}\"]");
        let stage = stage_with_chat(CALLER, &tool);
        let stage = match error {
            Some(error) if error.contains("longer") => {
                stage.variable("MCP_DELEGATOR_ANSWER_TIMEOUT_SEC", "1")
            }
            _ => stage,
        };
        let id = exec(&stage, "x");
        let waited = stage.wait(&id);
        assert_eq!(waited["data"]["state"], "completed", "{waited}");
        let result = result(&stage);
        assert_eq!((&result["call_id"], &result["output"]), (&json!("c1"), &json!(output)), "{command}");
        assert_eq!(result.get("error"), error.map(|error| json!(error)).as_ref(), "{command}");
        if command.starts_with("cat") {
            let call = read_text(&stage.world.project().join("call.json"));
            let call: Value = serde_json::from_str(&call).unwrap();
            assert_eq!((&call["name"], &call["arguments"]["key"]), (&json!("look_up"), &json!("colour")));
        }
        assert_eq!(task_processes(&id), Vec::<i32>::new(), "{command}");
    }
    let stage = stage_with_chat(CALLER, "tool_command = [\"/nowhere/tool\"]");
    let refused = stage.run_json(&["local", "exec", "x", "--agent", "chat", "--skip-git-repo-check"]);
    assert_eq!(refused["error"]["code"], "DEPENDENCY_MISSING", "{refused}");
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
