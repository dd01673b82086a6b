//! `--salvage`: an agent that a time limit has ended reports in one more read-only turn.

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, task_processes};
use serde_json::{Value, json};

use crate::PROGRAM;

const THREAD: &str = "0199a213-81c0-7800-8aa1-bbab2a035a53";

/// A Codex that never ends its first turn. `resumed` are the shell commands of a later turn.
fn stage(resumed: &str) -> Stage {
    let started = format!(r#"{{"type":"thread.started","thread_id":"{THREAD}"}}"#);
    Stage::with_shell_agent(
        PROGRAM,
        &format!(
            r#"prompt=$(cat)
echo '{started}'
echo '{{"type":"turn.started"}}'
case "$*" in
*resume*) echo "$*" > turn-arguments; echo "$prompt" > turn-prompt; {resumed} ;;
*) echo work > work.txt; sleep 600 ;;
esac"#
        ),
    )
}

fn report(text: &str) -> String {
    let message =
        json!({"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": text}});
    let usage = json!({"input_tokens": 30, "cached_input_tokens": 0, "output_tokens": 4});
    let end = json!({"type": "turn.completed", "usage": usage});
    format!("echo '{message}'; echo '{end}'")
}

fn run_into_the_idle_limit(stage: &Stage, more: &[&str]) -> (String, Value) {
    let limits = ["--mode", "workspace-write", "--idle-timeout-sec", "1"];
    let id = stage.exec(&[&limits, more].concat());
    let waited = stage.wait(&id);
    assert_eq!(waited["data"]["state"], "timeout", "{waited}");
    assert_eq!(task_processes(&id), Vec::<i32>::new());
    (id, waited)
}

#[test]
fn an_agent_reports_after_its_time_limit_in_a_read_only_turn() {
    let stage = stage(&report("Half done."));
    let (id, waited) = run_into_the_idle_limit(&stage, &["--salvage"]);
    let data = &waited["data"];
    assert_eq!(data["final_message"], "Half done.", "{waited}");
    assert!(waited["warnings"].to_string().contains("W_SALVAGE_001"), "{waited}");
    assert_eq!(data["metadata"]["thread_info"]["token_usage"]["output_tokens"], 4, "{waited}");
    let arguments = read_text(&stage.world.project().join("turn-arguments"));
    assert!(arguments.contains("read-only") && !arguments.contains("workspace-write"), "{arguments}");
    assert!(arguments.contains(THREAD), "{arguments}");
    assert!(read_text(&stage.world.project().join("turn-prompt")).contains("short report"));
    // The files that the turn would have changed are not the work of the task.
    let added = &data["metadata"]["file_operations"]["added_files"];
    assert_eq!(added, &json!(["work.txt"]), "{waited}");
    assert!(read_text(&stage.task_dir(&id).join("salvage.jsonl")).contains("Half done."));
}

#[test]
fn without_the_flag_nothing_is_asked() {
    let stage = stage(&report("Half done."));
    let (_, waited) = run_into_the_idle_limit(&stage, &[]);
    assert!(!waited["warnings"].to_string().contains("W_SALVAGE"), "{waited}");
    assert!(!stage.world.project().join("turn-prompt").exists());
}

#[test]
fn a_turn_that_fails_leaves_the_end_of_the_task_as_it_was() {
    let stage = stage("echo 'Error: no such thread' >&2; exit 1");
    let (_, waited) = run_into_the_idle_limit(&stage, &["--salvage"]);
    assert!(waited["warnings"].to_string().contains("no such thread"), "{waited}");
}

#[test]
fn an_agent_that_can_neither_be_asked_nor_resumed_is_refused() {
    let stage = stage("");
    let agents = json!({"script": {"protocol": "plain", "command": ["/bin/true"]}});
    let stage = stage.variable("MCP_DELEGATOR_AGENTS", &agents.to_string());
    let refused = stage.run_json(&["local", "exec", "x", "--agent", "script", "--salvage"]);
    assert_eq!(refused["error"]["code"], "UNSUPPORTED", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("salvage"), "{refused}");
}
