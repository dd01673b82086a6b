//! Many waits over HTTP whose hosts lose interest (F61): the waits end, the task does not.
//!
//! Whether a wait has ended cannot be seen from outside, but what it would have done can: a wait that still stands when its
//! task ends reads the result. So a result that is unread afterwards was waited for by nobody.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use delegator_testkit::stage::{Stage, wait_until};
use serde_json::{Value, json};

use crate::client::{release_agents, waiting_stage};
use crate::http_client::{HttpResponse, HttpServer};

const WAITS: u64 = 200;

/// A call that waits for a task, and tells that it does.
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

/// Returns when the wait on this stream stands.
fn until_waiting(stream: TcpStream) -> BufReader<TcpStream> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("notifications/progress") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "progress comes on the stream of the call");
    }
    reader
}

/// The task is still at work; and when it has ended, nobody has read what it did.
fn assert_result_unread(stage: &Stage, server: &HttpServer, id: &str) {
    let status = server.call("_codex_local_status", json!({"task_id": id}));
    assert_eq!(status["data"]["tasks"][0]["state"], "working", "{status}");
    release_agents(stage);
    let told = || server.call("_codex_local_status", json!({}))["data"].clone();
    wait_until("the task has ended", || told()["summary"]["recently_completed"] == 1);
    assert_eq!(told()["unread"], json!({"count": 1, "task_ids": [id]}));
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
    let standing: Vec<_> = streams.into_iter().map(until_waiting).collect();
    for (request, mut stream) in (100..).zip(standing) {
        session.notify("notifications/cancelled", json!({"requestId": request, "reason": "enough"}));
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("\"result\""), "what was cancelled is not answered: {rest}");
    }
    assert_eq!(session.call(99, "_codex_local_status", json!({}))["status"], "ok");
    assert_result_unread(&stage, &server, &id);
}

/// Returns the id of the event that tells that the wait on this stream stands.
fn progress_event_id(stream: TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut line, mut is_progress) = (String::new(), false);
    loop {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "progress comes on the stream of the call");
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
    let told = || server.call("_codex_local_status", json!({}))["data"].clone();
    release_agents(&stage);
    wait_until("the task has ended", || told()["summary"]["recently_completed"] == 1);
    let came_back = HttpResponse::read(session.resume(&last_event));
    let answer = came_back.rpc_response();
    assert_eq!(answer["id"], 2, "{came_back:?}");
    assert!(answer["result"].to_string().contains("completed"), "{came_back:?}");
    assert!(!came_back.body.contains(&format!("id: {last_event}")), "not what it had heard: {came_back:?}");
    assert!(told().get("unread").is_none(), "{}", told());
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
