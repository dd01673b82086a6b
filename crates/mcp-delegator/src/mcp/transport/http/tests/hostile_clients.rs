//! Slow, silent and disconnected clients over real connections, with short timeouts so that the tests are
//! quick.
//!
//! The server has three tools: `block` waits until the test releases it, `long` returns a long response, and
//! `wait_for_reconnect` waits until its client has disconnected and another connection resumes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use delegator_testkit::stage::wait_until;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::mcp::transport::http::*;
use crate::mcp::transport::listeners::{ListenerCount, wait_for_listener};

const SHORT: Duration = Duration::from_millis(50);
/// Longer than any test runs.
const LONG: Duration = Duration::from_secs(60);

/// More than the socket buffers hold.
const LONG_RESPONSE_BYTES: usize = 16 << 20;

/// Timeouts that no test reaches; a test overrides the one it checks.
fn generous_bounds() -> Bounds {
    Bounds {
        header_timeout: LONG,
        body_timeout: LONG,
        write_timeout: LONG,
        reconnect_window: LONG,
        ..Bounds::default()
    }
}

#[derive(Clone)]
struct BlockingHandler {
    blocked_calls: Arc<AtomicUsize>,
    calls_without_listener: Arc<AtomicUsize>,
    release: watch::Receiver<bool>,
}

impl BlockingHandler {
    async fn wait_for_new_listener(&self, context: &RequestContext<RoleServer>) {
        let ListenerCount(listeners) = context.extensions.get().unwrap();
        let _ = listeners.clone().wait_for(|listeners| *listeners == 0).await;
        self.calls_without_listener.fetch_add(1, Ordering::SeqCst);
        wait_for_listener(context).await;
        self.calls_without_listener.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ServerHandler for BlockingHandler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "long" {
            return Ok(
                CallToolResult::success(vec![ContentBlock::text("x".repeat(LONG_RESPONSE_BYTES))]).into()
            );
        }
        let mut release = self.release.clone();
        self.blocked_calls.fetch_add(1, Ordering::SeqCst);
        let is_released = tokio::select! {
            () = self.wait_for_new_listener(&context), if request.name == "wait_for_reconnect" => true,
            _ = release.wait_for(|is_released| *is_released) => true,
            () = context.ct.cancelled() => false,
        };
        self.blocked_calls.fetch_sub(1, Ordering::SeqCst);
        if is_released {
            Ok(CallToolResult::success(vec![ContentBlock::text("released")]).into())
        } else {
            Err(ErrorData::internal_error("cancelled", None))
        }
    }
}

struct Server {
    port: u16,
    token: String,
    blocked_calls: Arc<AtomicUsize>,
    /// Calls without a connected client, including those that were cancelled in that state.
    calls_without_listener: Arc<AtomicUsize>,
    release: watch::Sender<bool>,
}

impl Server {
    /// Serves on a separate thread until the test ends.
    fn start(bounds: Bounds) -> Server {
        Server::start_with(bounds, Arc::new(|_, _| false))
    }

    fn start_with(bounds: Bounds, is_in_task: IsInTask) -> Server {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let token = Token::load_or_create(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap().trim().to_owned();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (release, receiver) = watch::channel(false);
        let blocked_calls = Arc::new(AtomicUsize::new(0));
        let calls_without_listener = Arc::new(AtomicUsize::new(0));
        let handler = BlockingHandler {
            blocked_calls: Arc::clone(&blocked_calls),
            calls_without_listener: Arc::clone(&calls_without_listener),
            release: receiver,
        };
        std::thread::spawn(move || {
            let runtime = crate::mcp::runtime().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                accept(
                    listener,
                    Arc::new(HttpServer::new(
                        handler,
                        Gate::new(address.ip(), Scheme::HTTP, token, Scope::Write),
                        is_in_task,
                        bounds,
                    )),
                )
                .await
            })
        });
        Server { port: address.port(), token: text, blocked_calls, calls_without_listener, release }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream
    }

    fn head(&self, method: &str, more: &str) -> String {
        let Server { port, token, .. } = self;
        format!(
            "{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{more}\r\n"
        )
    }

    fn send(&self, method: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = self.connect();
        let more = format!("{headers}Connection: close\r\nContent-Length: {}\r\n", body.len());
        // The test checks the response, so a failed write needs no check.
        let _ = stream.write_all((self.head(method, &more) + body).as_bytes());
        stream
    }

    fn resume(&self, session: &str, last_event: &str) -> TcpStream {
        self.send("GET", &format!("{session}Last-Event-ID: {last_event}\r\n"), "")
    }

    fn request(&self, headers: &str, message: &Value) -> String {
        read_to_end(self.send("POST", headers, &message.to_string()))
    }

    fn health(&self) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        read_to_end(stream)
    }

    /// The headers of a new session.
    fn open_session(&self) -> Result<String, String> {
        self.open_session_with("2025-11-25")
    }

    fn open_session_with(&self, version: &str) -> Result<String, String> {
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "a-test", "version": "1"},
        }});
        let response = self.request("", &initialize);
        let id = response.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let id = id.ok_or(response.clone())?;
        let headers = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: {version}\r\n");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let accepted = self.request(&headers, &initialized);
        if accepted.starts_with("HTTP/1.1 202 ") { Ok(headers) } else { Err(accepted) }
    }

    /// Starts a blocking call. Returns its stream when it blocks, `None` if the server refused it.
    fn try_blocking_call(&self, session: &str) -> Option<TcpStream> {
        self.try_call(session, "block")
    }

    fn try_call(&self, session: &str, tool: &str) -> Option<TcpStream> {
        let before = self.blocked_call_count();
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool}});
        let stream = self.send("POST", session, &call.to_string());
        stream.set_nonblocking(true).unwrap();
        let is_over =
            || stream.peek(&mut [0; 1]).map_or_else(|e| e.kind() != ErrorKind::WouldBlock, |n| n == 0);
        wait_until("the call blocks", || self.blocked_call_count() > before || is_over());
        stream.set_nonblocking(false).unwrap();
        (self.blocked_call_count() > before).then_some(stream)
    }

    fn blocking_call(&self, session: &str) -> TcpStream {
        self.try_blocking_call(session).unwrap()
    }

    fn blocked_call_count(&self) -> usize {
        self.blocked_calls.load(Ordering::SeqCst)
    }
}

fn ping() -> Value {
    json!({"jsonrpc": "2.0", "id": 8, "method": "ping"})
}

/// Reads until the server closes the connection, by a reset too.
fn read_to_end(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes);
    assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() != ErrorKind::WouldBlock));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn assert_status(response: &str, status: u16) {
    assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{status} was expected: {response}");
}

#[test]
fn slow_bodies_time_out_and_long_calls_do_not() {
    let server = Server::start(Bounds { body_timeout: SHORT, ..generous_bounds() });
    let session = server.open_session().unwrap();
    let call = server.blocking_call(&session);
    for beginning in ["", "{\"jsonrpc\":"] {
        let mut stream = server.connect();
        stream.write_all((server.head("POST", "Content-Length: 100\r\n") + beginning).as_bytes()).unwrap();
        assert_status(&read_to_end(stream), 408);
        let mut stream = server.connect();
        stream.write_all(server.head("POST", "Transfer-Encoding: chunked\r\n").as_bytes()).unwrap();
        stream.write_all(b"1\r\n{\r\n").unwrap();
        assert_status(&read_to_end(stream), 408);
    }
    // The call has been blocked for longer than any of these.
    assert_eq!(server.blocked_call_count(), 1);
    server.release.send(true).unwrap();
    assert!(read_to_end(call).contains("released"));
}

#[test]
fn body_is_not_read_without_a_valid_token() {
    let server = Server::start(generous_bounds());
    let mut stream = server.connect();
    let head = server.head("POST", "Content-Length: 100\r\n").replace(&server.token, "nonsense");
    stream.write_all(head.as_bytes()).unwrap();
    assert_status(&read_to_end(stream), 401);
}

#[test]
fn a_client_that_belongs_to_a_task_is_refused_whatever_it_presents() {
    let checks = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&checks);
    let server = Server::start_with(
        generous_bounds(),
        Arc::new(move |peer, own| {
            assert!(peer != own && peer.ip() == own.ip());
            counter.fetch_add(1, Ordering::SeqCst) == 0
        }),
    );
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "block"}});
    assert_status(&server.request("", &call), 403);
    assert_eq!(server.blocked_call_count(), 0);
    // Checked once per connection, and only if the token is valid.
    let session = server.open_session().unwrap();
    let before = checks.load(Ordering::SeqCst);
    let body = ping().to_string();
    let request = |more: &str| {
        server.head("POST", &format!("{session}{more}Content-Length: {}\r\n", body.len())) + &body
    };
    let mut stream = server.connect();
    stream.write_all((request("").repeat(3) + &request("Connection: close\r\n")).as_bytes()).unwrap();
    assert_eq!(read_to_end(stream).matches("HTTP/1.1 200 ").count(), 4);
    let mut stream = server.connect();
    stream.write_all(request("").replace(&server.token, "nonsense").as_bytes()).unwrap();
    assert_status(&read_to_end(stream), 401);
    assert_eq!(checks.load(Ordering::SeqCst), before + 1);
}

#[test]
fn connections_without_a_token_do_not_take_the_slots_of_authorised_ones() {
    let server = Server::start(generous_bounds());
    let session = server.open_session().unwrap();
    let mut half_sent = Vec::new();
    for _ in 0..600 {
        let mut stream = server.connect();
        let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: 127");
        half_sent.push(stream);
    }
    for number in 0..100 {
        assert_status(&server.request(&session, &ping()), 200);
        let mut stream = server.connect();
        let _ = stream.write_all(&server.head("POST", "").as_bytes()[..60]);
        half_sent.push(stream);
        assert!(server.health().starts_with("HTTP/1.1 200 "), "{number}");
    }
    // The oldest gave way to the others.
    assert_eq!(read_to_end(half_sent.remove(0)), "");
}

#[test]
fn authorised_connections_are_bounded() {
    let server = Server::start(Bounds { connections: 4, ..generous_bounds() });
    let sessions = [(); 3].map(|()| server.open_session().unwrap());
    let calls: Vec<TcpStream> = sessions.iter().map(|session| server.blocking_call(session)).collect();
    assert_status(&server.request(&sessions[0], &ping()), 503);
    assert_status(&server.health(), 200);
    server.release.send(true).unwrap();
    for call in calls {
        assert!(read_to_end(call).contains("released"));
    }
    wait_until("a slot is free", || server.request(&sessions[0], &ping()).starts_with("HTTP/1.1 200 "));
}

/// On a busy machine the test itself may exceed the short timeouts; then it retries.
fn retry_until_some<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut result = None;
    wait_until(what, || {
        result = attempt();
        result.is_some()
    });
    result.unwrap()
}

#[test]
fn idle_connections_are_closed_and_waiting_calls_are_not() {
    let server = Server::start(Bounds { header_timeout: SHORT, connections: 3, ..generous_bounds() });
    let session = retry_until_some("a session", || server.open_session().ok());
    let call = retry_until_some("a call", || server.try_blocking_call(&session));
    assert_eq!(read_to_end(server.connect()), "");
    let response = retry_until_some("a response", || {
        let mut idle = server.connect();
        let _ = idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        Some(read_to_end(idle)).filter(|response| response.starts_with("HTTP/1.1 200 "))
    });
    assert!(response.ends_with("ok\n"), "an idle connection is closed without a response: {response}");
    let timed_out = retry_until_some("a 408 response", || {
        let mut slow = server.connect();
        let _ = slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc");
        Some(read_to_end(slow)).filter(|response| !response.is_empty())
    });
    assert_status(&timed_out, 408);
    wait_until("a connection is free", || server.health().starts_with("HTTP/1.1 200 "));
    server.release.send(true).unwrap();
    assert!(read_to_end(call).contains("released"));
}

#[test]
fn client_that_does_not_read_is_disconnected() {
    let server = Server::start(Bounds { write_timeout: SHORT, connections: 1, ..generous_bounds() });
    let mut stream = server.connect();
    let requests = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000);
    let ended = loop {
        if let Err(error) = stream.write_all(requests.as_bytes()) {
            break error;
        }
    };
    assert!(!matches!(ended.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{ended}");
    wait_until("its connection is free", || server.health().starts_with("HTTP/1.1 200 "));
}

#[test]
fn client_that_reads_late_gets_the_whole_response() {
    let server = Server::start(generous_bounds());
    let session = server.open_session().unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "long"}});
    let stream = server.send("POST", &session, &call.to_string());
    // This response proves that the other one is in the socket buffers by now, as far as it fits.
    assert_status(&server.request(&session, &ping()), 200);
    let response = read_to_end(stream);
    assert!(
        response.len() > LONG_RESPONSE_BYTES && response.ends_with("0\r\n\r\n"),
        "{} bytes",
        response.len()
    );
}

#[test]
fn bodies_over_the_memory_budget_are_refused() {
    let server = Server::start(Bounds { buffered_body_bytes: 1000, body_bytes: 800, ..generous_bounds() });
    let begin = |bytes: usize| {
        let mut stream = server.connect();
        let head = server.head("POST", "Content-Length: 800\r\nConnection: close\r\n");
        stream.write_all((head + &"x".repeat(bytes)).as_bytes()).unwrap();
        stream
    };
    let holding = begin(799);
    // The first body may not have been read yet; then the other one takes the budget.
    wait_until("the budget is exhausted", || {
        let other = begin(800);
        let response = read_to_end(other);
        assert!(response.starts_with("HTTP/1.1 503 ") || response.starts_with("HTTP/1.1 400 "), "{response}");
        response.starts_with("HTTP/1.1 503 ")
    });
    drop(holding);
    wait_until("the budget is free again", || read_to_end(begin(800)).starts_with("HTTP/1.1 400 "));
}

#[test]
fn least_recently_used_sessions_are_evicted() {
    let server = Server::start(Bounds { sessions: 4, ..generous_bounds() });
    let sessions: Vec<String> = (0..20).map(|_| server.open_session().unwrap()).collect();
    for (number, session) in sessions.iter().enumerate() {
        let status = if number < 16 { 404 } else { 200 };
        assert_status(&server.request(session, &ping()), status);
    }
    // A session with an open stream is not evicted.
    let mut listening: Vec<TcpStream> =
        sessions[16..].iter().map(|session| server.send("GET", session, "")).collect();
    for stream in &mut listening {
        stream.read_exact(&mut [0; 15]).unwrap();
    }
    assert_status(&server.open_session().unwrap_err(), 503);
    assert_status(&server.request(&sessions[16], &ping()), 200);
    listening.pop();
    wait_until("a session can be opened", || server.open_session().is_ok());
    assert_status(&server.request(&sessions[19], &ping()), 404);
}

#[test]
fn idle_sessions_end() {
    let server = Server::start(Bounds { session_idle_timeout: SHORT, ..generous_bounds() });
    let session = retry_until_some("a session", || server.open_session().ok());
    read_to_end(server.send("GET", &session, ""));
    wait_until("it is dropped", || server.request(&session, &ping()).starts_with("HTTP/1.1 404 "));
    retry_until_some("another session", || server.open_session().ok());
}

#[test]
fn request_of_a_disconnected_client_is_cancelled_and_its_session_is_not() {
    let server = Server::start(Bounds { reconnect_window: SHORT, ..generous_bounds() });
    let session = server.open_session().unwrap();
    drop(server.blocking_call(&session));
    wait_until("the call is cancelled", || server.blocked_call_count() == 0);
    assert_status(&server.request(&session, &ping()), 200);
}

#[test]
fn reconnecting_client_gets_its_response() {
    let server = Server::start(generous_bounds());
    let session = server.open_session().unwrap();
    let mut stream = server.blocking_call(&session);
    let last_event = next_event_id(&mut stream);
    drop(stream);
    let mut resumed = server.resume(&session, &last_event);
    // The response head is sent when the stream is registered.
    resumed.read_exact(&mut [0; 15]).unwrap();
    assert_eq!(server.blocked_call_count(), 1);
    server.release.send(true).unwrap();
    assert!(read_to_end(resumed).contains("released"));
}

#[test]
fn response_is_stored_until_the_client_reconnects() {
    let server = Server::start(generous_bounds());
    let session = server.open_session().unwrap();
    let mut stream = server.blocking_call(&session);
    let last_event = next_event_id(&mut stream);
    drop(stream);
    server.release.send(true).unwrap();
    wait_until("the call is over", || server.blocked_call_count() == 0);
    let resumed = read_to_end(server.resume(&session, &last_event));
    assert!(resumed.contains("released"), "{resumed}");
    assert!(!resumed.contains(&last_event), "only events after the named one: {resumed}");
    // A client may resume again, because the response may have been lost.
    assert!(read_to_end(server.resume(&session, &last_event)).contains("released"));
}

#[test]
fn response_that_needs_a_listener_is_sent_after_a_reconnect() {
    let server = Server::start(generous_bounds());
    let session = server.open_session().unwrap();
    let mut stream = server.try_call(&session, "wait_for_reconnect").unwrap();
    let last_event = next_event_id(&mut stream);
    assert_eq!(server.calls_without_listener.load(Ordering::SeqCst), 0);
    drop(stream);
    wait_until("the disconnect is detected", || server.calls_without_listener.load(Ordering::SeqCst) == 1);
    assert!(read_to_end(server.resume(&session, &last_event)).contains("released"));
    assert_eq!(server.calls_without_listener.load(Ordering::SeqCst), 0);
}

#[test]
fn response_that_needs_a_listener_is_not_produced_without_a_reconnect() {
    let server = Server::start(Bounds { reconnect_window: SHORT, ..generous_bounds() });
    for calls in 1..=20 {
        let session = server.open_session().unwrap();
        drop(server.try_call(&session, "wait_for_reconnect").unwrap());
        wait_until("the call is cancelled", || server.blocked_call_count() == 0);
        assert_eq!(server.calls_without_listener.load(Ordering::SeqCst), calls, "no response was produced");
    }
}

#[test]
fn stored_response_is_dropped_without_a_reconnect() {
    // No window at all, because every check reconnects and would prolong it.
    let server = Server::start(Bounds { reconnect_window: Duration::ZERO, ..generous_bounds() });
    let session = server.open_session().unwrap();
    let response = server.request(&session, &ping());
    let id = response.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    assert!(id.starts_with("0/"), "{response}");
    wait_until("it is dropped", || !read_to_end(server.resume(&session, &id)).contains("result"));
}

#[test]
fn priming_event_is_sent_only_from_protocol_2025_11_25() {
    let server = Server::start(generous_bounds());
    for (version, is_primed) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let session = server.open_session_with(version).unwrap();
        let response = server.request(&session, &ping());
        let data: Vec<&str> = response.lines().filter_map(|line| line.strip_prefix("data:")).collect();
        let (empty, messages): (Vec<&str>, Vec<&str>) = data.iter().partition(|data| data.trim().is_empty());
        assert_eq!((empty.len(), messages.len()), (usize::from(is_primed), 1), "{version}: {response}");
        let mut listening = server.send("GET", &session, "");
        assert_eq!(server.resume(&session, "0").read(&mut [0; 15]).unwrap(), 15);
        listening.read_exact(&mut [0; 15]).unwrap();
        if is_primed {
            assert_eq!(next_event_id(&mut listening), "0");
        }
    }
}

/// The id of the next event.
fn next_event_id(stream: &mut TcpStream) -> String {
    let mut received = String::new();
    loop {
        let mut bytes = [0; 64];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "the stream ended: {received}");
        received.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        let id = received.lines().find_map(|line| line.strip_prefix("id: ").or(line.strip_prefix("id:")));
        if let (Some(id), true) = (id, received.ends_with("\n\n\r\n")) {
            return id.to_owned();
        }
    }
}
