//! Waits over HTTP whose clients disconnect or cancel: the waits end, the task continues.
//!
//! A wait that is still active when its task ends marks the result as read. So a result that is unread afterwards proves
//! that no wait was active.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use delegator_testkit::stage::{Stage, wait_until};
use serde_json::{Value, json};

use crate::client::{release_agents, waiting_stage};
use crate::http_client::{HttpResponse, HttpServer};

const WAITS: u64 = 200;

/// The parameters of a `wait` call with a progress token.
fn wait_for(id: &str, token: u64) -> Value {
    json!({
        "name": "_codex_local_wait", "arguments": {"task_id": id, "timeout_sec": 600},
        "_meta": {"progressToken": token},
    })
}

fn submit(server: &HttpServer) -> String {
    let accepted = server.call("_codex_local_exec", json!({"task": "x"}));
    accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned()
}

/// Returns when progress shows that the wait on this stream is active.
fn until_waiting(stream: TcpStream) -> BufReader<TcpStream> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("notifications/progress") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "no progress on the stream of the call");
    }
    reader
}

/// The task is still running, and its result is unread after it has ended.
fn assert_result_unread(stage: &Stage, server: &HttpServer, id: &str) {
    let status = server.call("_codex_local_status", json!({"task_id": id}));
    assert_eq!(status["data"]["tasks"][0]["state"], "working", "{status}");
    release_agents(stage);
    let status_data = || server.call("_codex_local_status", json!({}))["data"].clone();
    wait_until("the task has ended", || status_data()["summary"]["recently_completed"] == 1);
    assert_eq!(status_data()["unread"], json!({"count": 1, "task_ids": [id]}));
    let waited = server.call("_codex_local_wait", json!({"task_id": id}));
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
}

#[test]
fn closed_connections_end_their_waits_and_not_the_task() {
    let stage = waiting_stage();
    let server = HttpServer::start(&stage);
    let id = submit(&server);
    let streams: Vec<TcpStream> =
        (0..WAITS).map(|token| server.send_stateless("tools/call", wait_for(&id, token))).collect();
    drop(streams.into_iter().map(until_waiting).collect::<Vec<_>>());
    assert_result_unread(&stage, &server, &id);
}

#[test]
fn cancelled_waits_end_and_the_task_and_session_continue() {
    let stage = waiting_stage();
    let server = HttpServer::start(&stage);
    let id = submit(&server);
    let session = server.session();
    let streams: Vec<TcpStream> =
        (0..WAITS).map(|token| session.send(100 + token, "tools/call", wait_for(&id, token))).collect();
    let active: Vec<_> = streams.into_iter().map(until_waiting).collect();
    for (request, mut stream) in (100..).zip(active) {
        session.notify("notifications/cancelled", json!({"requestId": request, "reason": "enough"}));
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("\"result\""), "a cancelled request got a response: {rest}");
    }
    assert_eq!(session.call(99, "_codex_local_status", json!({}))["status"], "ok");
    assert_result_unread(&stage, &server, &id);
}

/// Returns the id of the progress event that shows that the wait on this stream is active.
fn progress_event_id(stream: TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut line, mut is_progress) = (String::new(), false);
    loop {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "no progress on the stream of the call");
        is_progress |= line.contains("notifications/progress");
        if let (true, Some(id)) = (is_progress, line.strip_prefix("id:")) {
            return id.trim().to_owned();
        }
    }
}

#[test]
fn a_reconnecting_client_receives_the_missed_response() {
    let stage = waiting_stage();
    let server = HttpServer::start(&stage);
    let id = submit(&server);
    let session = server.session();
    let last_event = progress_event_id(session.send(2, "tools/call", wait_for(&id, 0)));
    let status_data = || server.call("_codex_local_status", json!({}))["data"].clone();
    release_agents(&stage);
    wait_until("the task has ended", || status_data()["summary"]["recently_completed"] == 1);
    let resumed = HttpResponse::read(session.resume(&last_event));
    let message = resumed.rpc_response();
    assert_eq!(message["id"], 2, "{resumed:?}");
    assert!(message["result"].to_string().contains("completed"), "{resumed:?}");
    assert!(!resumed.body.contains(&format!("id: {last_event}")), "an event was sent twice: {resumed:?}");
    assert!(status_data().get("unread").is_none(), "{}", status_data());
}

#[test]
fn a_deleted_session_ends_its_waits_and_not_the_task() {
    let stage = waiting_stage();
    let server = HttpServer::start(&stage);
    let id = submit(&server);
    let session = server.session();
    let mut stream = until_waiting(session.send(2, "tools/call", wait_for(&id, 0)));
    assert_eq!(server.request("DELETE", "/mcp", &session.headers, "").status / 100, 2);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("\"result\""), "{rest}");
    assert_result_unread(&stage, &server, &id);
}
