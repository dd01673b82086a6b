//! Peers that send too much, too slowly, or nonsense (F58, in small): others are answered, and memory stays bounded.

use std::io::{Read, Write};
use std::net::TcpStream;

use delegator_testkit::stage::until;
use serde_json::json;

use crate::host::{Host, OLD, quick};
use crate::http_host::{HttpServer, Reply};

/// What a server may grow by while it is treated badly, in KiB.
const MOST_GROWTH: u64 = 64 << 10;

fn head(server: &HttpServer, more: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{more}\r\n",
        server.port, server.token
    )
}

#[test]
fn a_huge_body_is_refused_unheld() {
    let stage = quick();
    let server = HttpServer::of(&stage);
    let before = server.peak_memory();
    let size = 100 << 20;
    let mut stream = server.connect();
    stream
        .write_all(head(&server, &format!("Content-Length: {size}\r\nConnection: close\r\n")).as_bytes())
        .unwrap();
    send_as_much_as_is_taken(&mut stream, size, |block| block.to_vec());
    let reply = Reply::read(stream);
    assert_eq!(reply.status, 413, "{reply:?}");
    // The same without saying so beforehand.
    let mut stream = server.connect();
    stream
        .write_all(head(&server, "Transfer-Encoding: chunked\r\nConnection: close\r\n").as_bytes())
        .unwrap();
    send_as_much_as_is_taken(&mut stream, size, |block| {
        [format!("{:x}\r\n", block.len()).as_bytes(), block, b"\r\n"].concat()
    });
    let reply = Reply::read(stream);
    assert_eq!(reply.status, 413, "{reply:?}");
    let grown = server.peak_memory() - before;
    assert!(grown <= MOST_GROWTH, "{grown} KiB");
    assert_eq!(server.call("_codex_local_status", json!({}))["status"], "ok");
}

fn send_as_much_as_is_taken(stream: &mut TcpStream, size: usize, framed: impl Fn(&[u8]) -> Vec<u8>) {
    let block = framed(&[b'['; 64 << 10]);
    for _ in 0..size / (64 << 10) {
        // Whoever refuses early does not read the rest.
        if stream.write_all(&block).is_err() {
            return;
        }
    }
}

#[test]
fn slow_connections_keep_nobody_out_for_good() {
    let stage = quick();
    let server = HttpServer::of(&stage);
    let mut host = Host::of(&stage, OLD);
    let before = server.peak_memory();
    let slow: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut stream = server.connect();
            let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: 127");
            stream
        })
        .collect();
    // More than there is room for: the next one is told so, at once.
    let told = server.request("GET", "/healthz", &server.usual(), "");
    assert_eq!(told.status, 503, "{told:?}");
    assert_eq!(
        host.envelope("_codex_local_status", json!({}))["status"],
        "ok",
        "other servers do not notice"
    );
    drop(slow);
    until("there is room again", || server.request("GET", "/healthz", &server.usual(), "").status == 200);
    assert_eq!(server.call("_codex_local_status", json!({}))["status"], "ok");
    let grown = server.peak_memory() - before;
    assert!(grown <= MOST_GROWTH, "{grown} KiB");
}

#[test]
fn headers_that_never_end_are_not_waited_for() {
    let stage = quick();
    let server = HttpServer::of(&stage);
    let mut stream = server.connect();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: 127").unwrap();
    // The server is the one who ends it.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let text = String::from_utf8_lossy(&rest);
    assert!(rest.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    assert_eq!(server.call("_codex_local_status", json!({}))["status"], "ok");
}

#[test]
fn garbage_is_answered_or_dropped() {
    let stage = quick();
    let server = HttpServer::of(&stage);
    let deep = "[".repeat(100_000);
    let body = |body: &str| {
        head(&server, &format!("Content-Length: {}\r\nConnection: close\r\n", body.len())) + body
    };
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("no HTTP", b"hello\r\n\r\n".to_vec()),
        ("bytes", (0..=255).cycle().take(4096).collect()),
        ("the greeting of TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
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
        ("two lengths", head(&server, "Content-Length: 2\r\nContent-Length: 30\r\n").into_bytes()),
        ("no JSON", body("hello").into_bytes()),
        ("half of a message", body("{\"jsonrpc\":\"2.0\",").into_bytes()),
        ("a batch", body("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]").into_bytes()),
        ("depth", body(&deep).into_bytes()),
        ("requests in a row, then garbage", [body("{}").into_bytes(), b"\0\0\0\0".to_vec()].concat()),
    ];
    for (what, bytes) in cases {
        let mut stream = server.connect();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let reply = Reply::read(stream);
        assert!(reply.status == 0 || (400..500).contains(&reply.status), "{what}: {reply:?}");
        let healthy = server.request("GET", "/healthz", &server.usual(), "");
        assert_eq!(healthy.status, 200, "after {what}");
    }
    assert_eq!(server.call("_codex_local_status", json!({}))["status"], "ok");
}
