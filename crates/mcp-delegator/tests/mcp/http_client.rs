//! An MCP client over HTTP: one connection per request, read to its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use delegator_testkit::answers;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::client::{LONG_TIMEOUT, STATELESS_VERSION};

/// A server on a free port.
#[derive(Debug)]
pub(crate) struct HttpServer {
    pub(crate) child: Child,
    pub(crate) port: u16,
    pub(crate) token: String,
    /// Without the port.
    address: String,
}

/// An initialized session of the older protocol.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    server: &'a HttpServer,
    pub(crate) headers: Vec<(String, String)>,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl HttpServer {
    pub(crate) fn start(stage: &Stage) -> HttpServer {
        HttpServer::start_with(
            stage.world.command(["serve", "--http", "127.0.0.1:0"]).stderr(Stdio::piped()),
            stage,
        )
    }

    pub(crate) fn start_with(command: &mut std::process::Command, stage: &Stage) -> HttpServer {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut output = String::new();
        let (address, port) = loop {
            let mut line = String::new();
            assert!(
                stderr.read_line(&mut line).unwrap() > 0,
                "the server exited before it listened: {output}"
            );
            if let Some(address) = line.trim_end().strip_suffix("/mcp") {
                let (address, port) = address.rsplit_once(':').unwrap();
                let address = address.rsplit_once('/').unwrap().1.replace("0.0.0.0", "127.0.0.1");
                break (address, port.parse().unwrap());
            }
            output.push_str(&line);
        };
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let token = std::fs::read_to_string(stage.world.home().join("state/http-token")).unwrap();
        HttpServer { child, port, token: token.trim().to_owned(), address }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((self.address.as_str(), self.port)).unwrap();
        stream.set_read_timeout(Some(LONG_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(LONG_TIMEOUT)).unwrap();
        stream
    }

    /// The headers of a valid request, with the token.
    pub(crate) fn default_headers(&self) -> Vec<(String, String)> {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        vec![
            header("Host", &format!("127.0.0.1:{}", self.port)),
            header("Authorization", &format!("Bearer {}", self.token)),
            header("Content-Type", "application/json"),
            header("Accept", "application/json, text/event-stream"),
        ]
    }

    /// Sends a request; the response is still to be read.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &str,
    ) -> TcpStream {
        let mut stream = self.connect();
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &str,
    ) -> HttpResponse {
        HttpResponse::read(self.send(method, path, headers, body))
    }

    /// Sends `initialize` of the older protocol.
    pub(crate) fn initialize(&self) -> HttpResponse {
        self.request("POST", "/mcp", &self.default_headers(), &initialize_message())
    }

    pub(crate) fn session(&self) -> Session<'_> {
        self.session_with(json!({}))
    }

    /// A session of a client with these capabilities.
    pub(crate) fn session_with(&self, capabilities: Value) -> Session<'_> {
        let message = initialize_message_with(capabilities);
        let response = self.request("POST", "/mcp", &self.default_headers(), &message);
        let id = response.header("Mcp-Session-Id").unwrap_or_else(|| panic!("{response:?}")).to_owned();
        let mut headers = self.default_headers();
        headers.push(("Mcp-Session-Id".to_owned(), id));
        headers.push(("MCP-Protocol-Version".to_owned(), "2025-11-25".to_owned()));
        let session = Session { server: self, headers };
        session.notify("notifications/initialized", json!({}));
        session
    }

    /// Sends a request of the stateless protocol; the response is still to be read.
    pub(crate) fn send_stateless(&self, method: &str, params: Value) -> TcpStream {
        let (headers, body) = self.stateless_message(method, params);
        self.send("POST", "/mcp", &headers, &body)
    }

    /// The response to a request of the stateless protocol.
    pub(crate) fn request_stateless(&self, method: &str, params: Value) -> Value {
        let (headers, body) = self.stateless_message(method, params);
        self.request("POST", "/mcp", &headers, &body).rpc_response()
    }

    fn stateless_message(&self, method: &str, mut params: Value) -> (Vec<(String, String)>, String) {
        let meta = params["_meta"].take();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "a-test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        for (key, value) in meta.as_object().into_iter().flatten() {
            params["_meta"][key] = value.clone();
        }
        let mut headers = self.default_headers();
        headers.push(("MCP-Protocol-Version".to_owned(), STATELESS_VERSION.to_owned()));
        headers.push(("Mcp-Method".to_owned(), method.to_owned()));
        if let Some(name) = params["name"].as_str() {
            headers.push(("Mcp-Name".to_owned(), name.to_owned()));
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        (headers, body.to_string())
    }

    pub(crate) fn call(&self, tool: &str, mut arguments: Value) -> Value {
        arguments["format"] = json!("json");
        let reply = self.request_stateless("tools/call", json!({"name": tool, "arguments": arguments}));
        reply["result"]["structuredContent"].clone()
    }

    /// Peak resident memory in KiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn initialize_message() -> String {
    initialize_message_with(json!({}))
}

fn initialize_message_with(capabilities: Value) -> String {
    let info = json!({"name": "a-test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string()
}

impl Session<'_> {
    pub(crate) fn notify(&self, method: &str, params: Value) {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        let reply = self.server.request("POST", "/mcp", &self.headers, &body);
        assert_eq!(reply.status, 202, "{reply:?}");
    }

    /// Sends a request; the response is still to be read.
    pub(crate) fn send(&self, id: u64, method: &str, params: Value) -> TcpStream {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        self.server.send("POST", "/mcp", &self.headers, &body)
    }

    /// Resumes the stream of a session after an event.
    pub(crate) fn resume(&self, last_event: &str) -> TcpStream {
        let mut headers = self.headers.clone();
        headers.push(("Last-Event-ID".to_owned(), last_event.to_owned()));
        self.server.send("GET", "/mcp", &headers, "")
    }

    pub(crate) fn call(&self, id: u64, tool: &str, mut arguments: Value) -> Value {
        arguments["format"] = json!("json");
        let stream = self.send(id, "tools/call", json!({"name": tool, "arguments": arguments}));
        HttpResponse::read(stream).rpc_response()["result"]["structuredContent"].clone()
    }
}

impl HttpResponse {
    pub(crate) fn read(mut stream: TcpStream) -> HttpResponse {
        let mut bytes = Vec::new();
        // A server that refuses a body while it is sent resets the connection; what was received before counts.
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { decode_chunks(body) } else { body.to_owned() };
        HttpResponse { status, head: head.to_owned(), body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The JSON-RPC messages: one body, or the events of a stream.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let messages = match serde_json::from_str(&self.body) {
            Ok(message) => vec![message],
            Err(_) => {
                let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
                data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
            }
        };
        messages.iter().for_each(answers::check);
        messages
    }

    /// The response among the messages.
    pub(crate) fn rpc_response(&self) -> Value {
        let found = self.messages().into_iter().find(|message| message.get("method").is_none());
        found.unwrap_or_else(|| panic!("no response in {self:?}"))
    }
}

fn decode_chunks(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        let Some(chunk) = rest.get(..size) else { break };
        whole.push_str(chunk);
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}
