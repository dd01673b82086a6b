//! Clients of real MCP servers, over stdio and over HTTP: they request the status and other messages.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::clock::{milliseconds, sleep_until};
use crate::error::LoadError;
use crate::testbed::Testbed;

const STATELESS_VERSION: &str = "2026-07-28";
const SESSION_VERSION: &str = "2025-11-25";
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends requests at a fixed rate until `is_over`. Returns the latencies in milliseconds.
pub(super) fn measure_at_rate(
    per_second: u32,
    is_over: &AtomicBool,
    mut request: impl FnMut() -> Result<(), LoadError>,
) -> Result<Vec<f64>, LoadError> {
    let started = Instant::now();
    let mut latencies = Vec::new();
    for number in 0_u32.. {
        sleep_until(started + Duration::from_secs(1) * number / per_second);
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let sent = Instant::now();
        request()?;
        latencies.push(milliseconds(sent.elapsed()));
    }
    Ok(latencies)
}

/// A status call, as a client sends it.
fn status_request() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "_codex_local_status", "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
                "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
}

fn check_status_response(text: &str) -> Result<(), LoadError> {
    match text.contains(" running, ") {
        true => Ok(()),
        false => Err(LoadError::ServerGone),
    }
}

pub(super) struct StdioClient {
    pub(super) child: Child,
    requests: ChildStdin,
    responses: BufReader<ChildStdout>,
}

impl StdioClient {
    pub(super) fn start(testbed: &Testbed, agent: &Path) -> Result<StdioClient, LoadError> {
        let mut command = testbed.cli_call(agent, &["serve"]);
        let mut child =
            command.stdin(Stdio::piped()).spawn().map_err(LoadError::io("start a server on stdio"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (requests, responses) = pipes.ok_or(LoadError::ServerGone)?;
        let mut client = StdioClient { child, requests, responses: BufReader::new(responses) };
        client.request_status()?;
        Ok(client)
    }

    pub(super) fn request_status(&mut self) -> Result<(), LoadError> {
        writeln!(self.requests, "{}", status_request())
            .map_err(LoadError::io("send a request over stdio"))?;
        let mut line = String::new();
        self.responses.read_line(&mut line).map_err(LoadError::io("read a response over stdio"))?;
        check_status_response(&line)
    }
}

pub(super) struct HttpClient {
    pub(super) child: Child,
    address: String,
    token: String,
}

impl HttpClient {
    pub(super) fn start(testbed: &Testbed, agent: &Path) -> Result<HttpClient, LoadError> {
        let mut command = testbed.cli_call(agent, &["serve", "--http", "127.0.0.1:0"]);
        let mut child =
            command.stderr(Stdio::piped()).spawn().map_err(LoadError::io("start a server on HTTP"))?;
        let stderr = BufReader::new(child.stderr.take().ok_or(LoadError::ServerGone)?);
        let address = stderr
            .lines()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_suffix("/mcp")?.rsplit_once("http://")?.1.to_owned()));
        let token = std::fs::read_to_string(testbed.state_dir().join("http-token"));
        let token = token.map_err(LoadError::io("read the token"))?.trim().to_owned();
        let client = HttpClient { child, address: address.ok_or(LoadError::ServerGone)?, token };
        client.request_status()?;
        Ok(client)
    }

    pub(super) fn request_status(&self) -> Result<(), LoadError> {
        let headers = format!(
            "MCP-Protocol-Version: {STATELESS_VERSION}\r\nMcp-Method: tools/call\r\nMcp-Name: _codex_local_status\r\n"
        );
        check_status_response(&self.exchange("POST", &headers, &status_request().to_string())?)
    }

    pub(super) fn connect(&self) -> Result<TcpStream, LoadError> {
        let connected = TcpStream::connect(&self.address).and_then(|stream| {
            stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
            stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
            Ok(stream)
        });
        connected.map_err(LoadError::io("connect"))
    }

    /// The head of a request, with the token, up to and including the empty line.
    pub(super) fn request_head(&self, method: &str, headers: &str) -> String {
        let HttpClient { address, token, .. } = self;
        format!(
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}\r\n"
        )
    }

    /// Sends a request and returns the connection to read the response from.
    pub(super) fn send_request(
        &self,
        method: &str,
        headers: &str,
        body: &str,
    ) -> Result<TcpStream, LoadError> {
        let headers = format!("{headers}Connection: close\r\nContent-Length: {}\r\n", body.len());
        let mut stream = self.connect()?;
        let sent = stream.write_all((self.request_head(method, &headers) + body).as_bytes());
        sent.map_err(LoadError::io("send a request over HTTP"))?;
        Ok(stream)
    }

    pub(super) fn exchange(&self, method: &str, headers: &str, body: &str) -> Result<String, LoadError> {
        let mut response = String::new();
        let read = self.send_request(method, headers, body)?.read_to_string(&mut response);
        read.map_err(LoadError::io("read a response over HTTP"))?;
        Ok(response)
    }

    /// `initialize` of protocol version 2025-11-25.
    pub(super) fn initialize(&self) -> Result<String, LoadError> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": SESSION_VERSION, "capabilities": {}, "clientInfo": {"name": "load", "version": "1"},
        }});
        self.exchange("POST", "", &message.to_string())
    }

    /// Opens a session and returns its headers.
    pub(super) fn open_session(&self) -> Result<String, LoadError> {
        let response = self.initialize()?;
        let id = response.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let id = id.ok_or(LoadError::Refused { response: response.clone() })?;
        let headers = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: {SESSION_VERSION}\r\n");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.exchange("POST", &headers, &initialized.to_string())?;
        Ok(headers)
    }
}
