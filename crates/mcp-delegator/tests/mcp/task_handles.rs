//! The MCP tasks extension: handles for `run` and `wait`, given only to requests that declare the capability.

use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, V2025_11, V2026_07, quick_stage, release_agents, result, text, waiting_stage};

fn tasks_capability() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn handle_of(result: &Value) -> String {
    assert_eq!(result["resultType"], "task", "{result}");
    result["taskId"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

fn get_task(client: &mut Client, handle: &str) -> Value {
    let task = result(client.request("tasks/get", json!({"taskId": handle})));
    assert_eq!(task["resultType"], "complete", "{task}");
    task
}

fn cancel(client: &mut Client, handle: &str) {
    let response = result(client.request("tasks/cancel", json!({"taskId": handle})));
    assert_eq!(response["resultType"], "complete", "{response}");
}

fn wait_for_status(client: &mut Client, handle: &str, status: &str) -> Value {
    wait_until(&format!("{handle} is {status}"), || get_task(client, handle)["status"] == status);
    get_task(client, handle)
}

#[test]
fn the_handle_of_a_run_is_the_task_and_outlives_the_server() {
    let stage = waiting_stage();
    let mut client = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let given = client.call("_codex_local_run", json!({"task": "x", "format": "json"}));
    let handle = handle_of(&given);
    assert!(handle.starts_with("T-local-"), "{given}");
    let working = get_task(&mut client, &handle);
    assert_eq!((&working["status"], working.get("result")), (&json!("working"), None), "{working}");
    assert!(working["pollIntervalMs"].as_u64().is_some(), "{working}");
    assert_eq!(client.close().0, Some(0));
    let mut next = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    assert_eq!(get_task(&mut next, &handle)["status"], "working");
    release_agents(&stage);
    let ended = wait_for_status(&mut next, &handle, "completed");
    let result = &ended["result"];
    assert_ne!(result["isError"], true, "{ended}");
    // In the requested format, from another server.
    assert_eq!(result["structuredContent"]["data"]["final_message"], "All done.", "{ended}");
}

#[test]
fn resuming_an_unknown_thread_gives_an_error_and_no_handle() {
    let stage = quick_stage();
    let mut client = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let thread = "0199a213-81c0-7800-8aa1-bbab2a035a53";
    let refused =
        client.call("_codex_local_resume", json!({"task": "x", "thread_id": thread, "format": "json"}));
    let error = &refused["structuredContent"]["error"];
    assert_eq!((&error["code"], &error["retryable"]), (&json!("NOT_FOUND"), &json!(false)), "{refused}");
    assert_eq!(error["details"]["code"], "THREAD_NOT_FOUND", "{refused}");
    let status = stage.run_json(&["local", "status"]);
    assert_eq!(status["data"]["summary"]["recently_completed"], 0, "{status}");
}

#[test]
fn cancelling_the_handle_of_a_run_cancels_the_task() {
    let stage = waiting_stage();
    let mut client = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let handle = handle_of(&client.call("_codex_local_run", json!({"task": "x"})));
    cancel(&mut client, &handle);
    wait_for_status(&mut client, &handle, "cancelled");
    assert_eq!(stage.wait(&handle)["data"]["state"], "cancelled");
    // Cancelling again after the end changes nothing.
    cancel(&mut client, &handle);
    assert_eq!(get_task(&mut client, &handle)["status"], "cancelled");
}

#[test]
fn cancelling_the_handle_of_a_wait_ends_the_wait() {
    let stage = waiting_stage();
    let mut client = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let id = client.exec();
    let handle = handle_of(&client.call("_codex_local_wait", json!({"task_id": id, "timeout_sec": 600})));
    assert_ne!(handle, id);
    assert_eq!(get_task(&mut client, &handle)["status"], "working");
    cancel(&mut client, &handle);
    let cancelled = get_task(&mut client, &handle);
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    // The cancelled handle is visible to every server.
    let mut next = Client::connect_with(&stage, V2026_07, &["--read-only"], tasks_capability());
    assert_eq!(get_task(&mut next, &handle), cancelled);
    let status = client.envelope("_codex_local_status", json!({"task_id": id}));
    assert_eq!(status["data"]["tasks"][0]["state"], "working", "{status}");
    release_agents(&stage);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn the_handle_of_a_wait_ends_with_the_task_or_with_its_time() {
    let stage = waiting_stage();
    let mut client = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let id = client.exec();
    let short = json!({"task_id": id, "timeout_sec": 1, "format": "json"});
    let short = handle_of(&client.call("_codex_local_wait", short));
    let ended = wait_for_status(&mut client, &short, "completed");
    let envelope = &ended["result"]["structuredContent"];
    assert_eq!(
        (&envelope["meta"]["wait_expired"], &envelope["data"]["state"]),
        (&json!(true), &json!("working")),
        "{ended}"
    );
    let long = handle_of(&client.call("_codex_local_wait", json!({"task_id": id, "format": "json"})));
    client.close();
    release_agents(&stage);
    let mut next = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let ended = wait_for_status(&mut next, &long, "completed");
    assert_eq!(ended["result"]["structuredContent"]["data"]["state"], "completed", "{ended}");
    let envelope = &ended["result"]["structuredContent"];
    assert_eq!(envelope["tool"], "_codex_local_wait", "{envelope}");
}

#[test]
fn the_handle_of_a_wait_returns_what_the_call_would() {
    // Its output is longer than a response, so the limits have to be the same, too.
    let long_output = json!({"command": {"run": "yes 0123456789 | head -n 20000"}});
    let stage = Stage::with_script(PROGRAM, successful_turn(&[long_output]));
    let mut capable = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let mut plain = Client::connect(&stage, V2026_07);
    let id = capable.exec();
    stage.wait(&id);
    for arguments in [
        json!({"task_id": id, "include_output": true, "max_output_bytes": 1024}),
        json!({"task_id": id, "include_output": true}),
        json!({"task_id": id}),
        json!({"task_ids": [id]}),
        json!({"task_ids": [id, id], "until": "any"}),
    ] {
        let direct = plain.envelope("_codex_local_wait", arguments.clone());
        let mut arguments = arguments;
        arguments["format"] = json!("json");
        let handle = handle_of(&capable.call("_codex_local_wait", arguments.clone()));
        let ended = wait_for_status(&mut capable, &handle, "completed");
        assert_eq!(ended["result"]["structuredContent"]["data"], direct["data"], "{arguments}");
    }
}

/// Adds copies of an ended task that were read already.
fn add_read_copies(stage: &Stage, id: &str, label: (&str, &str), count: u32) {
    let database = rusqlite::Connection::open(stage.world.home().join("state/registry.db")).unwrap();
    database.execute("CREATE TEMP TABLE copy AS SELECT * FROM tasks WHERE id = ?1", [id]).unwrap();
    for _ in 0..count {
        // In Crockford's base32, whatever the numbers are.
        let next = "UPDATE copy SET seq = seq + 1, ended_order = ended_order + 1, read_at_ms = 1, \
                    id = printf('T-local-%010d', seq + 1)";
        database.execute(next, []).unwrap();
        database.execute("INSERT INTO tasks SELECT * FROM copy", []).unwrap();
        let labelled = "INSERT INTO labels (key, value, task) SELECT ?1, ?2, seq FROM copy";
        database.execute(labelled, [label.0, label.1]).unwrap();
    }
}

#[test]
fn the_handle_of_a_wait_reports_that_more_tasks_have_ended() {
    let stage = quick_stage();
    let id = stage.exec(&["--labels", "batch=x"]);
    stage.wait(&id);
    add_read_copies(&stage, &id, ("batch", "x"), 100);
    let database = rusqlite::Connection::open(stage.world.home().join("state/registry.db")).unwrap();
    database
        .execute("UPDATE tasks SET read_at_ms = NULL, ended_order = 1000000 WHERE id = ?1", [&id])
        .unwrap();
    let mut client = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let arguments = json!({"labels": {"batch": "x"}, "until": "any", "format": "json"});
    let handle = handle_of(&client.call("_codex_local_wait", arguments));
    let ended = wait_for_status(&mut client, &handle, "completed");
    let envelope = &ended["result"]["structuredContent"];
    assert_eq!(envelope["data"]["tasks"][0]["task_id"], json!(id), "{ended}");
    assert!(envelope["meta"].to_string().contains("W_WAIT_001"), "{ended}");
}

#[test]
fn a_read_only_server_cancels_nothing() {
    let stage = waiting_stage();
    let id = stage.exec(&[]);
    let mut client = Client::connect_with(&stage, V2026_07, &["--read-only"], tasks_capability());
    let refused = client.request("tasks/cancel", json!({"taskId": id}));
    assert!(refused["error"].is_object(), "{refused}");
    assert_eq!(get_task(&mut client, &id)["status"], "working");
    release_agents(&stage);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn a_timed_out_task_is_a_completed_handle_with_an_error() {
    let stage = waiting_stage();
    let mut client = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let handle = handle_of(&client.call("_codex_local_run", json!({"task": "x", "hard_timeout_sec": 1})));
    let ended = wait_for_status(&mut client, &handle, "completed");
    assert_eq!(ended["result"]["isError"], true, "{ended}");
}

#[test]
fn a_handle_needs_the_capability_in_the_same_request() {
    let stage = quick_stage();
    let mut incapable = Client::connect(&stage, V2026_07);
    // The older protocol declares capabilities once at initialization, which does not count for this request.
    let mut before = Client::connect_with(&stage, V2025_11, &[], tasks_capability());
    for client in [&mut incapable, &mut before] {
        let result = client.call("_codex_local_run", json!({"task": "x"}));
        assert!(result.get("taskId").is_none() && text(&result).contains("All done."), "{result}");
    }
    let id = stage.exec(&[]);
    let refused = incapable.request("tasks/get", json!({"taskId": id}));
    assert!(refused["error"].is_object(), "{refused}");
    // Tools that return at once get no handle.
    let mut capable = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let status = capable.call("_codex_local_status", json!({}));
    assert!(status.get("taskId").is_none() && status["content"].is_array(), "{status}");
    assert_eq!(status["resultType"], "complete", "{status}");
    let ended = capable.call("_codex_local_run", json!({"task": "x", "mode": "wild"}));
    assert_eq!(ended["isError"], true, "{ended}");
}

#[test]
fn an_unknown_handle_is_refused() {
    let stage = quick_stage();
    let mut client = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    for handle in ["", "nonsense", "wait.all.json.5.nonsense", "T-local-0000000000", "../../etc"] {
        for method in ["tasks/get", "tasks/cancel"] {
            let reply = client.request(method, json!({"taskId": handle}));
            assert_eq!(reply["error"]["code"], -32602, "{method} {handle}: {reply}");
        }
    }
}

#[test]
fn input_responses_to_a_handle_are_ignored() {
    let stage = waiting_stage();
    let mut client = Client::connect_with(&stage, V2026_07, &[], tasks_capability());
    let handle = handle_of(&client.call("_codex_local_run", json!({"task": "x"})));
    let update = |handle: &str| json!({"taskId": handle, "inputResponses": {"x": {}}});
    result(client.request("tasks/update", update(&handle)));
    assert_eq!(get_task(&mut client, &handle)["status"], "working");
    let unknown = client.request("tasks/update", update("T-local-unknown"));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    release_agents(&stage);
    wait_for_status(&mut client, &handle, "completed");
}
