//! The tasks extension: handles for `run` and `wait`, given only to requests that declare it.

use delegator_testkit::stage::until;
use serde_json::{Value, json};

use crate::host::{Host, NEW, NEWER, go, quick, result, text, waiting};

fn able() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn handle_of(result: &Value) -> String {
    assert_eq!(result["resultType"], "task", "{result}");
    result["taskId"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

fn look(host: &mut Host, handle: &str) -> Value {
    let told = result(host.request("tasks/get", json!({"taskId": handle})));
    assert_eq!(told["resultType"], "complete", "{told}");
    told
}

fn cancel(host: &mut Host, handle: &str) {
    let told = result(host.request("tasks/cancel", json!({"taskId": handle})));
    assert_eq!(told["resultType"], "complete", "{told}");
}

fn until_it_is(host: &mut Host, handle: &str, status: &str) -> Value {
    until(&format!("{handle} is {status}"), || look(host, handle)["status"] == status);
    look(host, handle)
}

#[test]
fn the_handle_of_a_run_is_the_task_and_outlives_the_server() {
    let stage = waiting();
    let mut host = Host::with(&stage, NEW, &[], able());
    let given = host.call("_codex_local_run", json!({"task": "x", "format": "json"}));
    let handle = handle_of(&given);
    assert!(handle.starts_with("T-local-"), "{given}");
    let working = look(&mut host, &handle);
    assert_eq!((&working["status"], working.get("result")), (&json!("working"), None), "{working}");
    assert!(working["pollIntervalMs"].as_u64().is_some(), "{working}");
    assert_eq!(host.hang_up().0, Some(0));
    let mut next = Host::with(&stage, NEW, &[], able());
    assert_eq!(look(&mut next, &handle)["status"], "working");
    go(&stage);
    let ended = until_it_is(&mut next, &handle, "completed");
    let answer = &ended["result"];
    assert_ne!(answer["isError"], true, "{ended}");
    // In the format that was asked for, of another server.
    assert_eq!(answer["structuredContent"]["data"]["final_message"], "All done.", "{ended}");
}

#[test]
fn cancelling_the_handle_of_a_run_cancels_the_task() {
    let stage = waiting();
    let mut host = Host::with(&stage, NEW, &[], able());
    let handle = handle_of(&host.call("_codex_local_run", json!({"task": "x"})));
    cancel(&mut host, &handle);
    until_it_is(&mut host, &handle, "cancelled");
    assert_eq!(stage.wait(&handle)["data"]["state"], "cancelled");
    // Once more, and after the end: the handle stays as it is.
    cancel(&mut host, &handle);
    assert_eq!(look(&mut host, &handle)["status"], "cancelled");
}

#[test]
fn cancelling_the_handle_of_a_wait_ends_the_wait() {
    let stage = waiting();
    let mut host = Host::with(&stage, NEW, &[], able());
    let id = host.exec();
    let handle = handle_of(&host.call("_codex_local_wait", json!({"task_id": id, "timeout_sec": 600})));
    assert_ne!(handle, id);
    assert_eq!(look(&mut host, &handle)["status"], "working");
    cancel(&mut host, &handle);
    let cancelled = look(&mut host, &handle);
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    // What has ended has ended for every server.
    let mut next = Host::with(&stage, NEW, &["--read-only"], able());
    assert_eq!(look(&mut next, &handle), cancelled);
    let status = host.envelope("_codex_local_status", json!({"task_id": id}));
    assert_eq!(status["data"]["tasks"][0]["state"], "working", "{status}");
    go(&stage);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn the_handle_of_a_wait_ends_with_the_task_or_with_its_time() {
    let stage = waiting();
    let mut host = Host::with(&stage, NEW, &[], able());
    let id = host.exec();
    let short = json!({"task_id": id, "timeout_sec": 1, "format": "json"});
    let short = handle_of(&host.call("_codex_local_wait", short));
    let over = until_it_is(&mut host, &short, "completed");
    let envelope = &over["result"]["structuredContent"];
    assert_eq!(
        (&envelope["meta"]["wait_expired"], &envelope["data"]["state"]),
        (&json!(true), &json!("working")),
        "{over}"
    );
    let long = handle_of(&host.call("_codex_local_wait", json!({"task_id": id, "format": "json"})));
    host.hang_up();
    go(&stage);
    let mut next = Host::with(&stage, NEW, &[], able());
    let over = until_it_is(&mut next, &long, "completed");
    assert_eq!(over["result"]["structuredContent"]["data"]["state"], "completed", "{over}");
    let envelope = &over["result"]["structuredContent"];
    assert_eq!(envelope["tool"], "_codex_local_wait", "{envelope}");
}

/// A handle tells what the call would have told.
#[test]
fn the_inputs_of_a_wait_are_kept_in_its_handle() {
    let stage = quick();
    let mut able = Host::with(&stage, NEW, &[], able());
    let mut plain = Host::of(&stage, NEW);
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
        let over = until_it_is(&mut able, &handle, "completed");
        assert_eq!(over["result"]["structuredContent"]["data"], told["data"], "{arguments}");
    }
}

#[test]
fn a_server_that_changes_nothing_cancels_nothing() {
    let stage = waiting();
    let id = stage.exec(&[]);
    let mut host = Host::with(&stage, NEW, &["--read-only"], able());
    let refused = host.request("tasks/cancel", json!({"taskId": id}));
    assert!(refused["error"].is_object(), "{refused}");
    assert_eq!(look(&mut host, &id)["status"], "working");
    go(&stage);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn a_task_that_hit_its_limit_is_completed_with_an_error() {
    let stage = waiting();
    let mut host = Host::with(&stage, NEW, &[], able());
    let handle = handle_of(&host.call("_codex_local_run", json!({"task": "x", "hard_timeout_sec": 1})));
    let ended = until_it_is(&mut host, &handle, "completed");
    assert_eq!(ended["result"]["isError"], true, "{ended}");
}

#[test]
fn no_handle_is_given_to_who_did_not_ask_in_that_very_request() {
    let stage = quick();
    let mut unable = Host::of(&stage, NEW);
    // Declared once, at the beginning, in the older era: that is not this request.
    let mut before = Host::with(&stage, NEWER, &[], able());
    for host in [&mut unable, &mut before] {
        let answer = host.call("_codex_local_run", json!({"task": "x"}));
        assert!(answer.get("taskId").is_none() && text(&answer).contains("All done."), "{answer}");
    }
    let id = stage.exec(&[]);
    let refused = unable.request("tasks/get", json!({"taskId": id}));
    assert!(refused["error"].is_object(), "{refused}");
    // Tools that answer at once never need one.
    let mut able = Host::with(&stage, NEW, &[], able());
    let status = able.call("_codex_local_status", json!({}));
    assert!(status.get("taskId").is_none() && status["content"].is_array(), "{status}");
    assert_eq!(status["resultType"], "complete", "{status}");
    let over = able.call("_codex_local_run", json!({"task": "x", "mode": "wild"}));
    assert_eq!(over["isError"], true, "{over}");
}

#[test]
fn a_handle_nobody_gave_is_unknown() {
    let stage = quick();
    let mut host = Host::with(&stage, NEW, &[], able());
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
fn nothing_is_asked_under_a_handle_so_nothing_is_taken() {
    let stage = waiting();
    let mut host = Host::with(&stage, NEW, &[], able());
    let handle = handle_of(&host.call("_codex_local_run", json!({"task": "x"})));
    let update = |handle: &str| json!({"taskId": handle, "inputResponses": {"x": {}}});
    result(host.request("tasks/update", update(&handle)));
    assert_eq!(look(&mut host, &handle)["status"], "working");
    let unknown = host.request("tasks/update", update("T-local-nobody"));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    go(&stage);
    until_it_is(&mut host, &handle, "completed");
}
