//! Calls that act on several tasks: per-item results in JSON and in Markdown.

use std::io::Read;
use std::process::Stdio;

use delegator_domain::task::TaskId;
use delegator_registry::{NewTask, OpenOptions, Registry, StateDir};
use delegator_testkit::program::wait_for_output;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::client::{Client, V2025_11, V2026_07, quick_stage, release_agents, result, text, waiting_stage};

const UNKNOWN: &str = "T-local-0000000000";
const OTHER_UNKNOWN: &str = "T-local-1111111111";

fn codes(batch: &Value) -> Vec<Value> {
    let results = batch["results"].as_array().unwrap_or_else(|| panic!("{batch}"));
    results.iter().map(|item| item["error"]["code"].clone()).collect()
}

#[test]
fn a_wait_for_known_and_unknown_tasks_is_a_partial_success() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_11);
    let id = client.exec();
    let input = json!({"task_ids": [UNKNOWN, id, OTHER_UNKNOWN, id]});
    let envelope = client.envelope("_codex_local_wait", input.clone());
    assert_eq!(
        (&envelope["status"], &envelope["meta"]["partial"]),
        (&json!("ok"), &json!(true)),
        "{envelope}"
    );
    let data = &envelope["data"];
    assert_eq!((&data["partial_success"], &data["total_operations"]), (&json!(true), &json!(3)), "{data}");
    assert_eq!(codes(data), [json!("TASK_NOT_FOUND"), Value::Null, json!("TASK_NOT_FOUND")], "{data}");
    assert_eq!(data["tasks"].as_array().unwrap().len(), 1, "{data}");
    assert_eq!((&data["tasks"][0]["task_id"], &data["tasks"][0]["state"]), (&json!(id), &json!("completed")));
    let result = client.call("_codex_local_wait", input);
    assert!([&id, UNKNOWN, OTHER_UNKNOWN].iter().all(|id| text(&result).contains(*id)), "{result}");
}

#[test]
fn a_wait_for_unknown_tasks_only_names_all_of_them() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_11);
    let input = json!({"task_ids": [UNKNOWN, OTHER_UNKNOWN]});
    let envelope = client.envelope("_codex_local_wait", input.clone());
    assert_eq!((&envelope["status"], &envelope["error"]["code"]), (&json!("error"), &json!("NOT_FOUND")));
    let details = &envelope["error"]["details"];
    assert_eq!((&details["failed"], &details["successful"]), (&json!(2), &json!(0)), "{envelope}");
    assert_eq!(codes(details), ["TASK_NOT_FOUND", "TASK_NOT_FOUND"]);
    let result = client.call("_codex_local_wait", input);
    assert!([UNKNOWN, OTHER_UNKNOWN].iter().all(|id| text(&result).contains(*id)), "{result}");
}

#[test]
fn cancel_of_several_tasks_reports_each() {
    let stage = waiting_stage();
    let mut client = Client::connect_with(&stage, V2025_11, &["--toolsets", "local,extra"], json!({}));
    let id = client.exec();
    let plan = client.envelope("_codex_cancel", json!({"task_ids": [id, UNKNOWN], "dry_run": true}));
    assert_eq!(plan["data"]["summary"], "1 of 2 tasks would be cancelled", "{plan}");
    let envelope = client.envelope("_codex_cancel", json!({"task_ids": [id, UNKNOWN]}));
    assert_eq!(
        (&envelope["status"], &envelope["meta"]["partial"]),
        (&json!("ok"), &json!(true)),
        "{envelope}"
    );
    assert_eq!(codes(&envelope["data"]), [Value::Null, json!("TASK_NOT_FOUND")], "{envelope}");
    let result = client.call("_codex_cancel", json!({"all": true}));
    assert!(text(&result).starts_with("# No task to cancel"), "{result}");
}

/// The handle of a wait carries the unknown ids as well.
#[test]
fn a_task_handle_reports_unknown_ids() {
    let stage = quick_stage();
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut client = Client::connect_with(&stage, V2026_07, &[], capabilities);
    let id = stage.exec(&[]);
    stage.wait(&id);
    let started = client.call("_codex_local_wait", json!({"task_ids": [id, UNKNOWN], "format": "json"}));
    let handle = started["taskId"].as_str().unwrap_or_else(|| panic!("{started}"));
    let ended = result(client.request("tasks/get", json!({"taskId": handle})));
    let data = &ended["result"]["structuredContent"]["data"];
    assert_eq!(codes(data), [Value::Null, json!("TASK_NOT_FOUND")], "{ended}");
}

/// Adds a queued task whose id differs from the given one only at the end; returns the beginning that they share.
fn add_similar_task(stage: &Stage, id: &str) -> String {
    let last = if id.ends_with('0') { "1" } else { "0" };
    let similar: TaskId = format!("{}{last}", &id[..id.len() - 1]).parse().unwrap();
    let dir = StateDir::open(&stage.world.home().join("state"), &OpenOptions::default()).unwrap();
    let mut registry = Registry::open(&dir).unwrap();
    registry.set_queue_paused(true).unwrap();
    registry.submit(&NewTask::reading(similar, "/elsewhere", "similar"), b"{}", 1).unwrap();
    id[..14].to_owned()
}

#[test]
fn a_task_handle_reports_an_ambiguous_id_beside_a_task_that_matches_it() {
    let stage = quick_stage();
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut client = Client::connect_with(&stage, V2026_07, &[], capabilities);
    let id = stage.exec(&[]);
    stage.wait(&id);
    let ambiguous = add_similar_task(&stage, &id);
    let started = client.call("_codex_local_wait", json!({"task_ids": [id, ambiguous], "format": "json"}));
    let handle = started["taskId"].as_str().unwrap_or_else(|| panic!("{started}"));
    let ended = result(client.request("tasks/get", json!({"taskId": handle})));
    let results = &ended["result"]["structuredContent"]["data"]["results"];
    assert_eq!((&results[0]["target"], &results[0]["success"]), (&json!(id), &json!(true)), "{ended}");
    assert_eq!(
        (&results[1]["target"], &results[1]["success"]),
        (&json!(ambiguous), &json!(false)),
        "{ended}"
    );
}

#[test]
fn an_id_that_becomes_ambiguous_during_a_wait_still_names_its_task() {
    let stage = waiting_stage();
    let id = stage.exec(&[]);
    let mut command = stage.world.command(["local", "wait", "--task-ids", &id[..14]]);
    command.env("MCP_DELEGATOR_LOG", "mcp_delegator=debug").stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut log, mut byte) = (String::new(), [0]);
    while !log.contains("waiting for a task") {
        assert_eq!(child.stderr.as_mut().unwrap().read(&mut byte).unwrap(), 1, "ended early: {log}");
        log.push(char::from(byte[0]));
    }
    add_similar_task(&stage, &id);
    release_agents(&stage);
    let run = wait_for_output(child);
    assert_eq!(run.exit, Some(0), "{run:?}");
    assert_eq!(run.json()["data"]["tasks"][0]["task_id"], json!(id), "{run:?}");
}
