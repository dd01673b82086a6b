//! HTTP clients that send too much, too slowly, or garbage: others are served, and memory stays bounded.

use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpStream;

use delegator_testkit::stage::wait_until;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use serde_json::json;

use crate::client::{Client, V2025_06, quick_stage};
use crate::http_client::{HttpResponse, HttpServer, initialize_message};

/// Allowed memory growth of the server, in KiB.
const MAX_GROWTH_KIB: u64 = 64 << 10;
/// The sessions that a server retains.
const MAX_SESSIONS: usize = 256;
/// The load test uses ten times as many.
const SLOW_CONNECTIONS: usize = 1_000;

fn request_head(server: &HttpServer, more: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{more}\r\n",
        server.port, server.token
    )
}

#[test]
fn a_huge_body_is_refused_without_buffering() {
    let stage = quick_stage();
    let server = HttpServer::start(&stage);
    let before = server.peak_memory();
    let size = 100 << 20;
    let mut stream = server.connect();
    stream
        .write_all(
            request_head(&server, &format!("Content-Length: {size}\r\nConnection: close\r\n")).as_bytes(),
        )
        .unwrap();
    send_until_refused(&mut stream, size, |block| block.to_vec());
    let reply = HttpResponse::read(stream);
    assert_eq!(reply.status, 413, "{reply:?}");
    // The same without Content-Length.
    let mut stream = server.connect();
    stream
        .write_all(request_head(&server, "Transfer-Encoding: chunked\r\nConnection: close\r\n").as_bytes())
        .unwrap();
    send_until_refused(&mut stream, size, |block| {
        [format!("{:x}\r\n", block.len()).as_bytes(), block, b"\r\n"].concat()
    });
    let reply = HttpResponse::read(stream);
    assert_eq!(reply.status, 413, "{reply:?}");
    let growth = server.peak_memory() - before;
    assert!(growth <= MAX_GROWTH_KIB, "{growth} KiB");
    assert_eq!(server.call("_codex_local_status", json!({}))["status"], "ok");
}

fn send_until_refused(stream: &mut TcpStream, size: usize, framed: impl Fn(&[u8]) -> Vec<u8>) {
    let block = framed(&[b'['; 64 << 10]);
    for _ in 0..size / (64 << 10) {
        // The server may refuse early and not read the rest.
        if stream.write_all(&block).is_err() {
            return;
        }
    }
}

/// Raises the soft limit of open files to the hard limit; returns it.
fn raise_file_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files.try_into().unwrap())
}

#[test]
fn slow_connections_do_not_block_others_permanently() {
    let stage = quick_stage();
    // Server and stdio client start with the default limits; only this test process opens more files.
    let server = HttpServer::start(&stage);
    let mut client = Client::connect(&stage, V2025_06);
    let before = server.peak_memory();
    let at_once = raise_file_limit().saturating_sub(100).min(SLOW_CONNECTIONS);
    let mut connections = VecDeque::with_capacity(at_once);
    let mut open_connection = || {
        // With a low limit, close the oldest connection first.
        if connections.len() == at_once {
            connections.pop_front();
        }
        let mut stream = server.connect();
        let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: 127");
        connections.push_back(stream);
    };
    for number in 0..SLOW_CONNECTIONS {
        open_connection();
        if number % 100 == 0 {
            assert_eq!(server.call("_codex_local_status", json!({}))["status"], "ok", "after {number}");
            assert_eq!(client.envelope("_codex_local_status", json!({}))["status"], "ok", "after {number}");
        }
    }
    assert_eq!(server.call("_codex_local_status", json!({}))["status"], "ok");
    drop(connections);
    let growth = server.peak_memory() - before;
    assert!(growth <= MAX_GROWTH_KIB, "{growth} KiB");
}

#[test]
fn a_server_out_of_descriptors_recovers() {
    const MAX_FILES: usize = 16;
    let stage = quick_stage();
    let server = HttpServer::start(&stage);
    let process = Pid::from_child(&server.child);
    let low_limit = Rlimit { current: Some(MAX_FILES as u64), ..getrlimit(Resource::Nofile) };
    let usual = prlimit(Some(process), Resource::Nofile, low_limit).unwrap();
    let connections: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
    let open = || std::fs::read_dir(format!("/proc/{}/fd", server.child.id())).unwrap().count();
    // The one that is left accepts a connection, whose peer cannot be looked up then.
    wait_until("the server has at most one descriptor left", || open() + 1 >= MAX_FILES);
    drop(connections);
    wait_until("the server accepts requests again", || {
        server.request("GET", "/healthz", &server.default_headers(), "").status == 200
    });
    prlimit(Some(process), Resource::Nofile, usual).unwrap();
    assert_eq!(server.call("_codex_local_status", json!({}))["status"], "ok");
}

#[test]
fn abandoned_sessions_are_bounded() {
    let stage = quick_stage();
    let server = HttpServer::start(&stage);
    let first = server.session();
    let open_sessions = |count: usize| {
        let before = server.peak_memory();
        for _ in 0..count {
            let response = server.initialize();
            assert_eq!(response.status, 200, "{response:?}");
        }
        server.peak_memory() - before
    };
    let growth = open_sessions(MAX_SESSIONS + 100);
    assert!(growth <= MAX_GROWTH_KIB, "{growth} KiB");
    let more = open_sessions(400);
    assert!(more <= growth / 2, "{more} KiB more for sessions beyond the limit, {growth} KiB below it");
    let late = server.request("POST", "/mcp", &first.headers, &initialize_message());
    assert_eq!(late.status, 404, "the oldest session must be closed: {late:?}");
    assert_eq!(server.session().call(2, "_codex_local_status", json!({}))["status"], "ok");
}

#[test]
fn a_body_of_very_many_values_is_refused_unparsed() {
    let stage = quick_stage();
    let server = HttpServer::start(&stage);
    let before = server.peak_memory();
    for value in ["1", "{}", "[]", "\"\"", "{\"a\":1}"] {
        let values = vec![value; (3 << 20) / (value.len() + 1)].join(",");
        let params = format!("{{\"name\":\"_codex_local_status\",\"arguments\":{{\"a\":[{values}]}}}}");
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}");
        let reply = server.request("POST", "/mcp", &server.default_headers(), &body);
        assert_eq!(reply.status, 413, "{value}: {reply:?}");
    }
    let growth = server.peak_memory() - before;
    assert!(growth <= MAX_GROWTH_KIB, "{growth} KiB");
    assert_eq!(server.call("_codex_local_status", json!({}))["status"], "ok");
}

#[test]
fn garbage_is_refused_or_dropped() {
    let stage = quick_stage();
    let server = HttpServer::start(&stage);
    let deep = "[".repeat(100_000);
    let body = |body: &str| {
        request_head(&server, &format!("Content-Length: {}\r\nConnection: close\r\n", body.len())) + body
    };
    let in_a_row = (request_head(&server, "Content-Length: 2\r\n") + "{}").repeat(1_000);
    let garbage: Vec<u8> = (0..=255).rev().cycle().take(1 << 20).collect();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("no HTTP", b"hello\r\n\r\n".to_vec()),
        ("bytes", (0..=255).cycle().take(4096).collect()),
        ("a TLS handshake", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("another version", b"GET / HTTP/9.9\r\n\r\n".to_vec()),
        (
            "a long header",
            format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20))
                .into_bytes(),
        ),
        (
            "many headers",
            format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(2_000))
                .into_bytes(),
        ),
        ("two lengths", request_head(&server, "Content-Length: 2\r\nContent-Length: 30\r\n").into_bytes()),
        ("no JSON", body("hello").into_bytes()),
        ("half of a message", body("{\"jsonrpc\":\"2.0\",").into_bytes()),
        ("a batch", body("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]").into_bytes()),
        ("depth", body(&deep).into_bytes()),
        ("requests in a row, then garbage", [body("{}").into_bytes(), b"\0\0\0\0".to_vec()].concat()),
        ("very many in a row, then garbage", [in_a_row.as_bytes(), &garbage].concat()),
        (
            "a body without end, in chunks",
            request_head(&server, "Transfer-Encoding: chunked\r\n").into_bytes(),
        ),
    ];
    for (what, bytes) in cases {
        let mut stream = server.connect();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let reply = HttpResponse::read(stream);
        assert!(reply.status == 0 || (400..500).contains(&reply.status), "{what}: {reply:?}");
        let healthy = server.request("GET", "/healthz", &server.default_headers(), "");
        assert_eq!(healthy.status, 200, "after {what}");
    }
    assert_eq!(server.call("_codex_local_status", json!({}))["status"], "ok");
}

/// 40 MB, of which a response has a few kilobytes.
#[test]
fn the_output_and_events_of_a_long_stream_use_bounded_memory() {
    let stage = quick_stage();
    let id = stage.exec(&[]);
    stage.wait(&id);
    let line =
        |number: usize| format!("{}\n", json!({"type": "noise", "number": number, "text": "x".repeat(960)}));
    let events: String = (0..40_000).map(line).collect();
    std::fs::write(stage.task_dir(&id).join("events.jsonl"), &events).unwrap();
    let server = HttpServer::start(&stage);
    server.call("_codex_local_status", json!({}));
    let before = server.peak_memory();
    let arguments =
        json!({"task_id": id, "include_output": true, "include_events": true, "max_output_bytes": 8_000});
    let results = server.call("_codex_local_results", arguments);
    let growth = server.peak_memory() - before;
    println!("{growth} KiB");
    assert!(growth <= 8 << 10, "{growth} KiB");
    let output = &results["data"]["output"];
    let stdout = output["stdout"].as_str().unwrap();
    assert!(
        stdout.starts_with(&line(0)[..100]) && events.ends_with(&stdout[stdout.len() - 100..]),
        "{stdout}"
    );
    assert_eq!((&output["truncated"], &output["original_size"]), (&json!(true), &json!(events.len())));
    let items = results["data"]["events"]["items"].as_array().unwrap();
    assert_eq!(items.last().unwrap()["number"], 39_999);
    let first = items[0]["number"].as_u64().unwrap();
    let cursor = results["data"]["events"]["next_cursor"].clone();
    let earlier = server.call("_codex_local_results", json!({"task_id": id, "events_cursor": cursor}));
    let items = earlier["data"]["events"]["items"].as_array().unwrap();
    assert_eq!(items.last().unwrap()["number"], first - 1, "{earlier}");
}
