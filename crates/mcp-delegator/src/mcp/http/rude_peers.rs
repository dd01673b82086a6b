//! The face before peers that are slow, silent, or gone, with little patience, so that nobody has to wait for its end: real
//! connections to a server with a tool that stays until it is let go, one that tells much, and one that waits until nobody
//! listens and tells when somebody does.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use delegator_testkit::stage::until;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;
use crate::mcp::audience::{Audience, somebody_listens};

const SHORT: Duration = Duration::from_millis(50);
/// Nothing waits for it to pass.
const LONG: Duration = Duration::from_secs(60);

/// More than fits between a server and a peer that does not read.
const MUCH: usize = 16 << 20;

/// Bounds no test comes near, but for those it sets.
fn patient() -> Bounds {
    Bounds {
        headers_may_take: LONG,
        body_may_take: LONG,
        answer_may_lie: LONG,
        come_back_within: LONG,
        ..Bounds::default()
    }
}

#[derive(Clone)]
struct Staying {
    staying: Arc<AtomicUsize>,
    left: Arc<AtomicUsize>,
    let_go: watch::Receiver<bool>,
}

impl Staying {
    async fn tell_who_comes_back(&self, context: &RequestContext<RoleServer>) {
        let Audience(listeners) = context.extensions.get().unwrap();
        let _ = listeners.clone().wait_for(|listeners| *listeners == 0).await;
        self.left.fetch_add(1, Ordering::SeqCst);
        somebody_listens(context).await;
        self.left.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ServerHandler for Staying {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "tell much" {
            return Ok(CallToolResult::success(vec![ContentBlock::text("x".repeat(MUCH))]).into());
        }
        let mut let_go = self.let_go.clone();
        self.staying.fetch_add(1, Ordering::SeqCst);
        let is_let_go = tokio::select! {
            () = self.tell_who_comes_back(&context), if request.name == "tell somebody" => true,
            _ = let_go.wait_for(|let_go| *let_go) => true,
            () = context.ct.cancelled() => false,
        };
        self.staying.fetch_sub(1, Ordering::SeqCst);
        match is_let_go {
            true => Ok(CallToolResult::success(vec![ContentBlock::text("let go")]).into()),
            false => Err(ErrorData::internal_error("cancelled", None)),
        }
    }
}

struct Server {
    port: u16,
    token: String,
    staying: Arc<AtomicUsize>,
    /// Calls that have nobody to tell it, or had nobody when they were cancelled.
    left: Arc<AtomicUsize>,
    let_go: watch::Sender<bool>,
}

impl Server {
    /// On a thread of its own, until the test is over.
    fn with(bounds: Bounds) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::at(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap().trim().to_owned();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (let_go, receiver) = watch::channel(false);
        let staying = Arc::new(AtomicUsize::new(0));
        let left = Arc::new(AtomicUsize::new(0));
        let handler = Staying { staying: Arc::clone(&staying), left: Arc::clone(&left), let_go: receiver };
        std::thread::spawn(move || {
            let runtime = crate::mcp::runtime().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                accept(listener, Face::new(handler, Gate::of(address.ip(), token), bounds)).await
            })
        });
        Server { port: address.port(), token: text, staying, left, let_go }
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
        // The answer shows what became of it.
        let _ = stream.write_all((self.head(method, &more) + body).as_bytes());
        stream
    }

    fn resume(&self, session: &str, last_event: &str) -> TcpStream {
        self.send("GET", &format!("{session}Last-Event-ID: {last_event}\r\n"), "")
    }

    fn ask(&self, headers: &str, message: &Value) -> String {
        rest(self.send("POST", headers, &message.to_string()))
    }

    fn health(&self) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        rest(stream)
    }

    /// The headers of a new session.
    fn session(&self) -> Result<String, String> {
        self.session_of("2025-11-25")
    }

    fn session_of(&self, version: &str) -> Result<String, String> {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "a-test", "version": "1"},
        }});
        let greeting = self.ask("", &hello);
        let id = greeting.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let id = id.ok_or(greeting.clone())?;
        let headers = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: {version}\r\n");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let taken = self.ask(&headers, &initialized);
        if taken.starts_with("HTTP/1.1 202 ") { Ok(headers) } else { Err(taken) }
    }

    /// Begins a call that stays; gives its stream when it does, nothing if the server would not have it.
    fn begin_to_stay(&self, session: &str) -> Option<TcpStream> {
        self.begin_to(session, "stay")
    }

    fn begin_to(&self, session: &str, tool: &str) -> Option<TcpStream> {
        let before = self.staying();
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool}});
        let stream = self.send("POST", session, &call.to_string());
        stream.set_nonblocking(true).unwrap();
        let is_over =
            || stream.peek(&mut [0; 1]).map_or_else(|e| e.kind() != ErrorKind::WouldBlock, |n| n == 0);
        until("the call stays", || self.staying() > before || is_over());
        stream.set_nonblocking(false).unwrap();
        (self.staying() > before).then_some(stream)
    }

    fn stay(&self, session: &str) -> TcpStream {
        self.begin_to_stay(session).unwrap()
    }

    fn staying(&self) -> usize {
        self.staying.load(Ordering::SeqCst)
    }
}

fn ping() -> Value {
    json!({"jsonrpc": "2.0", "id": 8, "method": "ping"})
}

/// Until the server ends it; a reset is an end, too.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes);
    assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() != ErrorKind::WouldBlock));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn assert_status(answer: &str, status: u16) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status} was expected: {answer}");
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for_and_a_long_call_is() {
    let server = Server::with(Bounds { body_may_take: SHORT, ..patient() });
    let session = server.session().unwrap();
    let call = server.stay(&session);
    for beginning in ["", "{\"jsonrpc\":"] {
        let mut stream = server.connect();
        stream.write_all((server.head("POST", "Content-Length: 100\r\n") + beginning).as_bytes()).unwrap();
        assert_status(&rest(stream), 408);
        let mut stream = server.connect();
        stream.write_all(server.head("POST", "Transfer-Encoding: chunked\r\n").as_bytes()).unwrap();
        stream.write_all(b"1\r\n{\r\n").unwrap();
        assert_status(&rest(stream), 408);
    }
    // The call has stayed for longer than any of these.
    assert_eq!(server.staying(), 1);
    server.let_go.send(true).unwrap();
    assert!(rest(call).contains("let go"));
}

#[test]
fn a_body_of_somebody_without_the_token_is_not_waited_for_at_all() {
    let server = Server::with(patient());
    let mut stream = server.connect();
    let head = server.head("POST", "Content-Length: 100\r\n").replace(&server.token, "nonsense");
    stream.write_all(head.as_bytes()).unwrap();
    assert_status(&rest(stream), 401);
}

/// On a busy machine this test is itself too slow for so little patience at times; then it tries again.
fn sooner_or_later<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut result = None;
    until(what, || {
        result = attempt();
        result.is_some()
    });
    result.unwrap()
}

#[test]
fn a_silent_connection_keeps_no_place_and_one_that_is_waited_on_does() {
    let server = Server::with(Bounds { headers_may_take: SHORT, connections: 3, ..patient() });
    let session = sooner_or_later("a session", || server.session().ok());
    let call = sooner_or_later("a call", || server.begin_to_stay(&session));
    assert_eq!(rest(server.connect()), "");
    let answered = sooner_or_later("an answer", || {
        let mut idle = server.connect();
        let _ = idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        Some(rest(idle)).filter(|answer| answer.starts_with("HTTP/1.1 200 "))
    });
    assert!(answered.ends_with("ok\n"), "no word about the end of what is idle: {answered}");
    let told = sooner_or_later("a word", || {
        let mut slow = server.connect();
        let _ = slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc");
        Some(rest(slow)).filter(|answer| !answer.is_empty())
    });
    assert_status(&told, 408);
    until("there is room", || server.health().starts_with("HTTP/1.1 200 "));
    server.let_go.send(true).unwrap();
    assert!(rest(call).contains("let go"));
}

#[test]
fn a_peer_that_does_not_read_is_not_written_to_for_ever() {
    let server = Server::with(Bounds { answer_may_lie: SHORT, connections: 1, ..patient() });
    let mut stream = server.connect();
    let questions = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000);
    let ended = loop {
        if let Err(error) = stream.write_all(questions.as_bytes()) {
            break error;
        }
    };
    assert!(!matches!(ended.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{ended}");
    until("its place is free", || server.health().starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_peer_that_reads_late_gets_all_of_a_long_answer() {
    let server = Server::with(patient());
    let session = server.session().unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "tell much"}});
    let stream = server.send("POST", &session, &call.to_string());
    // Answered meanwhile, so the other answer lies there by now, as far as it fits.
    assert_status(&server.ask(&session, &ping()), 200);
    let answer = rest(stream);
    assert!(answer.len() > MUCH && answer.ends_with("0\r\n\r\n"), "{} bytes", answer.len());
}

#[test]
fn bodies_that_find_no_room_are_refused_at_once() {
    let server = Server::with(Bounds { bytes_at_once: 1000, body_bytes: 800, ..patient() });
    let begin = |bytes: usize| {
        let mut stream = server.connect();
        let head = server.head("POST", "Content-Length: 800\r\nConnection: close\r\n");
        stream.write_all((head + &"x".repeat(bytes)).as_bytes()).unwrap();
        stream
    };
    let holding = begin(799);
    // It may not have been read yet; then the other one holds its place.
    until("there is no room", || {
        let other = begin(800);
        let answer = rest(other);
        assert!(answer.starts_with("HTTP/1.1 503 ") || answer.starts_with("HTTP/1.1 400 "), "{answer}");
        answer.starts_with("HTTP/1.1 503 ")
    });
    drop(holding);
    until("there is room again", || rest(begin(800)).starts_with("HTTP/1.1 400 "));
}

#[test]
fn sessions_nobody_deletes_make_room_for_others() {
    let server = Server::with(Bounds { sessions: 4, ..patient() });
    let sessions: Vec<String> = (0..20).map(|_| server.session().unwrap()).collect();
    for (number, session) in sessions.iter().enumerate() {
        let status = if number < 16 { 404 } else { 200 };
        assert_status(&server.ask(session, &ping()), status);
    }
    // A session somebody listens in is not ended for another.
    let mut listening: Vec<TcpStream> =
        sessions[16..].iter().map(|session| server.send("GET", session, "")).collect();
    for stream in &mut listening {
        stream.read_exact(&mut [0; 15]).unwrap();
    }
    assert_status(&server.session().unwrap_err(), 503);
    assert_status(&server.ask(&sessions[16], &ping()), 200);
    listening.pop();
    until("there is room for a session", || server.session().is_ok());
    assert_status(&server.ask(&sessions[19], &ping()), 404);
}

#[test]
fn a_session_nobody_says_anything_in_ends() {
    let server = Server::with(Bounds { session_may_rest: SHORT, ..patient() });
    let session = sooner_or_later("a session", || server.session().ok());
    rest(server.send("GET", &session, ""));
    until("it is forgotten", || server.ask(&session, &ping()).starts_with("HTTP/1.1 404 "));
    sooner_or_later("another one", || server.session().ok());
}

#[test]
fn a_request_whose_host_is_gone_is_cancelled_and_its_session_is_not() {
    let server = Server::with(Bounds { come_back_within: SHORT, ..patient() });
    let session = server.session().unwrap();
    drop(server.stay(&session));
    until("the call is cancelled", || server.staying() == 0);
    assert_status(&server.ask(&session, &ping()), 200);
}

#[test]
fn a_host_that_comes_back_in_time_gets_its_answer() {
    let server = Server::with(patient());
    let session = server.session().unwrap();
    let mut stream = server.stay(&session);
    let last_event = next_id(&mut stream);
    drop(stream);
    let mut resumed = server.resume(&session, &last_event);
    // The first words come when the stream is in place.
    resumed.read_exact(&mut [0; 15]).unwrap();
    assert_eq!(server.staying(), 1);
    server.let_go.send(true).unwrap();
    assert!(rest(resumed).contains("let go"));
}

#[test]
fn an_answer_that_is_ready_before_its_host_is_back_is_kept_for_it() {
    let server = Server::with(patient());
    let session = server.session().unwrap();
    let mut stream = server.stay(&session);
    let last_event = next_id(&mut stream);
    drop(stream);
    server.let_go.send(true).unwrap();
    until("the call is over", || server.staying() == 0);
    let came_back = rest(server.resume(&session, &last_event));
    assert!(came_back.contains("let go"), "{came_back}");
    assert!(!came_back.contains(&last_event), "only what came after the event that is named: {came_back}");
    // It may have been lost on the way again.
    assert!(rest(server.resume(&session, &last_event)).contains("let go"));
}

#[test]
fn what_is_only_told_to_somebody_is_told_to_a_host_that_comes_back() {
    let server = Server::with(patient());
    let session = server.session().unwrap();
    let mut stream = server.begin_to(&session, "tell somebody").unwrap();
    let last_event = next_id(&mut stream);
    assert_eq!(server.left.load(Ordering::SeqCst), 0);
    drop(stream);
    until("it is known that nobody listens", || server.left.load(Ordering::SeqCst) == 1);
    assert!(rest(server.resume(&session, &last_event)).contains("let go"));
    assert_eq!(server.left.load(Ordering::SeqCst), 0);
}

#[test]
fn what_is_only_told_to_somebody_is_not_told_when_nobody_comes_back() {
    let server = Server::with(Bounds { come_back_within: SHORT, ..patient() });
    for calls in 1..=20 {
        let session = server.session().unwrap();
        drop(server.begin_to(&session, "tell somebody").unwrap());
        until("the call is cancelled", || server.staying() == 0);
        assert_eq!(server.left.load(Ordering::SeqCst), calls, "nobody was told");
    }
}

#[test]
fn an_answer_nobody_comes_back_for_is_forgotten() {
    // To look for it is to come back for it.
    let server = Server::with(Bounds { come_back_within: Duration::ZERO, ..patient() });
    let session = server.session().unwrap();
    let answer = server.ask(&session, &ping());
    let id = answer.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    assert!(id.starts_with("0/"), "{answer}");
    until("it is forgotten", || !rest(server.resume(&session, &id)).contains("result"));
}

#[test]
fn only_a_host_that_knows_the_event_without_a_message_is_sent_it() {
    let server = Server::with(patient());
    for (version, is_primed) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let session = server.session_of(version).unwrap();
        let answer = server.ask(&session, &ping());
        let data: Vec<&str> = answer.lines().filter_map(|line| line.strip_prefix("data:")).collect();
        let (empty, messages): (Vec<&str>, Vec<&str>) = data.iter().partition(|data| data.trim().is_empty());
        assert_eq!((empty.len(), messages.len()), (usize::from(is_primed), 1), "{version}: {answer}");
        let mut listening = server.send("GET", &session, "");
        assert_eq!(server.resume(&session, "0").read(&mut [0; 15]).unwrap(), 15);
        listening.read_exact(&mut [0; 15]).unwrap();
        if is_primed {
            assert_eq!(next_id(&mut listening), "0");
        }
    }
}

/// The id of the next event.
fn next_id(stream: &mut TcpStream) -> String {
    let mut seen = String::new();
    loop {
        let mut bytes = [0; 64];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "the stream ended: {seen}");
        seen.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        let id = seen.lines().find_map(|line| line.strip_prefix("id: ").or(line.strip_prefix("id:")));
        if let (Some(id), true) = (id, seen.ends_with("\n\n\r\n")) {
            return id.to_owned();
        }
    }
}
