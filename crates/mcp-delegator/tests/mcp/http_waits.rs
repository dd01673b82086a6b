//! Many waits over HTTP whose hosts lose interest (F61): the waits end, the task does not.
//!
//! Whether a wait has ended cannot be seen from outside, but what it would have done can: a wait that still stands when its
//! task ends reads the result. So a result that is unread afterwards was waited for by nobody.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use delegator_testkit::stage::{Stage, until};
use serde_json::{Value, json};

use crate::host::{go, waiting};
use crate::http_host::{HttpServer, Reply};

const WAITS: u64 = 200;

/// A call that waits for a task, and tells that it does.
fn wait_for(id: &str, token: u64) -> Value {
    json!({
        "name": "_codex_local_wait", "arguments": {"task_id": id, "timeout_sec": 600},
        "_meta": {"progressToken": token},
    })
}

fn begun(server: &HttpServer) -> String {
    let accepted = server.call("_codex_local_exec", json!({"task": "x"}));
    accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned()
}

/// Returns when the wait on this stream stands.
fn stands(stream: TcpStream) -> BufReader<TcpStream> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("notifications/progress") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "progress comes on the stream of the call");
    }
    reader
}

/// The task is still at work; and when it has ended, nobody has read what it did.
fn nobody_waited(stage: &Stage, server: &HttpServer, id: &str) {
    let status = server.call("_codex_local_status", json!({"task_id": id}));
    assert_eq!(status["data"]["tasks"][0]["state"], "working", "{status}");
    go(stage);
    let told = || server.call("_codex_local_status", json!({}))["data"].clone();
    until("the task has ended", || told()["summary"]["recently_completed"] == 1);
    assert_eq!(told()["unread"], json!({"count": 1, "task_ids": [id]}));
    let waited = server.call("_codex_local_wait", json!({"task_id": id}));
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
}

#[test]
fn connections_that_are_gone_end_their_waits_and_not_the_task() {
    let stage = waiting();
    let server = HttpServer::of(&stage);
    let id = begun(&server);
    let streams: Vec<TcpStream> =
        (0..WAITS).map(|token| server.begin_asking("tools/call", wait_for(&id, token))).collect();
    drop(streams.into_iter().map(stands).collect::<Vec<_>>());
    nobody_waited(&stage, &server, &id);
}

#[test]
fn waits_of_a_session_that_are_cancelled_end_and_neither_the_task_nor_the_session_does() {
    let stage = waiting();
    let server = HttpServer::of(&stage);
    let id = begun(&server);
    let session = server.session();
    let streams: Vec<TcpStream> =
        (0..WAITS).map(|token| session.begin(100 + token, "tools/call", wait_for(&id, token))).collect();
    let standing: Vec<_> = streams.into_iter().map(stands).collect();
    for (request, mut stream) in (100..).zip(standing) {
        session.notify("notifications/cancelled", json!({"requestId": request, "reason": "enough"}));
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("\"result\""), "what was cancelled is not answered: {rest}");
    }
    assert_eq!(session.call(99, "_codex_local_status", json!({}))["status"], "ok");
    nobody_waited(&stage, &server, &id);
}

/// Returns the id of the event that tells that the wait on this stream stands.
fn last_event_of(stream: TcpStream) -> String {
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
fn a_host_that_was_away_when_the_task_ended_is_told_when_it_is_back() {
    let stage = waiting();
    let server = HttpServer::of(&stage);
    let id = begun(&server);
    let session = server.session();
    let last_event = last_event_of(session.begin(2, "tools/call", wait_for(&id, 0)));
    let told = || server.call("_codex_local_status", json!({}))["data"].clone();
    go(&stage);
    until("the task has ended", || told()["summary"]["recently_completed"] == 1);
    let came_back = Reply::read(session.resume(&last_event));
    let answer = came_back.message();
    assert_eq!(answer["id"], 2, "{came_back:?}");
    assert!(answer["result"].to_string().contains("completed"), "{came_back:?}");
    assert!(!came_back.body.contains(&format!("id: {last_event}")), "not what it had heard: {came_back:?}");
    assert!(told().get("unread").is_none(), "{}", told());
}

#[test]
fn a_session_that_is_deleted_ends_its_waits_and_not_the_task() {
    let stage = waiting();
    let server = HttpServer::of(&stage);
    let id = begun(&server);
    let session = server.session();
    let mut stream = stands(session.begin(2, "tools/call", wait_for(&id, 0)));
    assert_eq!(server.request("DELETE", "/mcp", &session.headers, "").status / 100, 2);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("\"result\""), "{rest}");
    nobody_waited(&stage, &server, &id);
}
