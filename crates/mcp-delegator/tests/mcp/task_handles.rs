//! The tasks extension: handles for `run` and `wait`, given only to requests that declare it.

use delegator_testkit::stage::wait_until;
use serde_json::{Value, json};

use crate::client::{Client, V2025_11, V2026_07, quick_stage, release_agents, result, text, waiting_stage};

fn tasks_capability() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn handle_of(result: &Value) -> String {
    assert_eq!(result["resultType"], "task", "{result}");
    result["taskId"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

fn get_task(host: &mut Client, handle: &str) -> Value {
    let told = result(host.request("tasks/get", json!({"taskId": handle})));
    assert_eq!(told["resultType"], "complete", "{told}");
    told
}

fn cancel(host: &mut Client, handle: &str) {
    let told = result(host.request("tasks/cancel", json!({"taskId": handle})));
    assert_eq!(told["resultType"], "complete", "{told}");
}

fn wait_for_status(host: &mut Client, handle: &str, status: &str) -> Value {
    wait_until(&format!("{handle} is {status}"), || get_task(host, handle)["status"] == status);
    get_task(host, handle)
}

#[test]
fn the_handle_of_a_run_is_the_task_and_outlives_the_server() {
    let stage = waiting_stage();
    let mut host = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let given = host.call("_codex_local_run", json!({"task": "x", "format": "json"}));
    let handle = handle_of(&given);
    assert!(handle.starts_with("T-local-"), "{given}");
    let working = get_task(&mut host, &handle);
    assert_eq!((&working["status"], working.get("result")), (&json!("working"), None), "{working}");
    assert!(working["pollIntervalMs"].as_u64().is_some(), "{working}");
    assert_eq!(host.close().0, Some(0));
    let mut next = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    assert_eq!(get_task(&mut next, &handle)["status"], "working");
    release_agents(&stage);
    let ended = wait_for_status(&mut next, &handle, "completed");
    let answer = &ended["result"];
    assert_ne!(answer["isError"], true, "{ended}");
    // In the format that was asked for, of another server.
    assert_eq!(answer["structuredContent"]["data"]["final_message"], "All done.", "{ended}");
}

#[test]
fn cancelling_the_handle_of_a_run_cancels_the_task() {
    let stage = waiting_stage();
    let mut host = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let handle = handle_of(&host.call("_codex_local_run", json!({"task": "x"})));
    cancel(&mut host, &handle);
    wait_for_status(&mut host, &handle, "cancelled");
    assert_eq!(stage.wait(&handle)["data"]["state"], "cancelled");
    // Once more, and after the end: the handle stays as it is.
    cancel(&mut host, &handle);
    assert_eq!(get_task(&mut host, &handle)["status"], "cancelled");
}

#[test]
fn cancelling_the_handle_of_a_wait_ends_the_wait() {
    let stage = waiting_stage();
    let mut host = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let id = host.exec();
    let handle = handle_of(&host.call("_codex_local_wait", json!({"task_id": id, "timeout_sec": 600})));
    assert_ne!(handle, id);
    assert_eq!(get_task(&mut host, &handle)["status"], "working");
    cancel(&mut host, &handle);
    let cancelled = get_task(&mut host, &handle);
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    // What has ended has ended for every server.
    let mut next = Client::connect_with(&stage, V2026_07, &["--read-only"], tasks_capability());
    assert_eq!(get_task(&mut next, &handle), cancelled);
    let status = host.envelope("_codex_local_status", json!({"task_id": id}));
    assert_eq!(status["data"]["tasks"][0]["state"], "working", "{status}");
    release_agents(&stage);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn the_handle_of_a_wait_ends_with_the_task_or_with_its_time() {
    let stage = waiting_stage();
    let mut host = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let id = host.exec();
    let short = json!({"task_id": id, "timeout_sec": 1, "format": "json"});
    let short = handle_of(&host.call("_codex_local_wait", short));
    let over = wait_for_status(&mut host, &short, "completed");
    let envelope = &over["result"]["structuredContent"];
    assert_eq!(
        (&envelope["meta"]["wait_expired"], &envelope["data"]["state"]),
        (&json!(true), &json!("working")),
        "{over}"
    );
    let long = handle_of(&host.call("_codex_local_wait", json!({"task_id": id, "format": "json"})));
    host.close();
    release_agents(&stage);
    let mut next = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let over = wait_for_status(&mut next, &long, "completed");
    assert_eq!(over["result"]["structuredContent"]["data"]["state"], "completed", "{over}");
    let envelope = &over["result"]["structuredContent"];
    assert_eq!(envelope["tool"], "_codex_local_wait", "{envelope}");
}

/// A handle tells what the call would have told.
#[test]
fn the_handle_of_a_wait_returns_what_the_call_would() {
    let stage = quick_stage();
    let mut able = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let mut plain = Client::connect(&stage, V2026_07);
    let id = able.exec();
    stage.wait(&id);
    for arguments in [
        json!({"task_id": id, "include_output": true, "max_output_bytes": 1024}),
        json!({"task_id": id}),
        json!({"task_ids": [id]}),
        json!({"task_ids": [id, id], "until": "any"}),
    ] {
        let told = plain.envelope("_codex_local_wait", arguments.clone());
        let mut arguments = arguments;
        arguments["format"] = json!("json");
        let handle = handle_of(&able.call("_codex_local_wait", arguments.clone()));
        let over = wait_for_status(&mut able, &handle, "completed");
        assert_eq!(over["result"]["structuredContent"]["data"], told["data"], "{arguments}");
    }
}

#[test]
fn a_read_only_server_cancels_nothing() {
    let stage = waiting_stage();
    let id = stage.exec(&[]);
    let mut host = Client::connect_with(&stage, V2026_07, &["--read-only"], tasks_capability());
    let refused = host.request("tasks/cancel", json!({"taskId": id}));
    assert!(refused["error"].is_object(), "{refused}");
    assert_eq!(get_task(&mut host, &id)["status"], "working");
    release_agents(&stage);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn a_timed_out_task_is_a_completed_handle_with_an_error() {
    let stage = waiting_stage();
    let mut host = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let handle = handle_of(&host.call("_codex_local_run", json!({"task": "x", "hard_timeout_sec": 1})));
    let ended = wait_for_status(&mut host, &handle, "completed");
    assert_eq!(ended["result"]["isError"], true, "{ended}");
}

#[test]
fn a_handle_needs_the_capability_in_the_same_request() {
    let stage = quick_stage();
    let mut unable = Client::connect(&stage, V2026_07);
    // Declared once, at the beginning, in the older era: that is not this request.
    let mut before = Client::connect_with(&stage, V2025_11, &[], tasks_capability());
    for host in [&mut unable, &mut before] {
        let answer = host.call("_codex_local_run", json!({"task": "x"}));
        assert!(answer.get("taskId").is_none() && text(&answer).contains("All done."), "{answer}");
    }
    let id = stage.exec(&[]);
    let refused = unable.request("tasks/get", json!({"taskId": id}));
    assert!(refused["error"].is_object(), "{refused}");
    // Tools that answer at once never need one.
    let mut able = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let status = able.call("_codex_local_status", json!({}));
    assert!(status.get("taskId").is_none() && status["content"].is_array(), "{status}");
    assert_eq!(status["resultType"], "complete", "{status}");
    let over = able.call("_codex_local_run", json!({"task": "x", "mode": "wild"}));
    assert_eq!(over["isError"], true, "{over}");
}

#[test]
fn an_unknown_handle_is_refused() {
    let stage = quick_stage();
    let mut host = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    for handle in
        ["", "nonsense", "wait.all.json.5.nonsense", "T-local-00000000000000000000000000000000", "../../etc"]
    {
        for method in ["tasks/get", "tasks/cancel"] {
            let reply = host.request(method, json!({"taskId": handle}));
            assert_eq!(reply["error"]["code"], -32602, "{method} {handle}: {reply}");
        }
    }
}

#[test]
fn input_responses_to_a_handle_are_ignored() {
    let stage = waiting_stage();
    let mut host = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let handle = handle_of(&host.call("_codex_local_run", json!({"task": "x"})));
    let update = |handle: &str| json!({"taskId": handle, "inputResponses": {"x": {}}});
    result(host.request("tasks/update", update(&handle)));
    assert_eq!(get_task(&mut host, &handle)["status"], "working");
    let unknown = host.request("tasks/update", update("T-local-nobody"));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    release_agents(&stage);
    wait_for_status(&mut host, &handle, "completed");
}
