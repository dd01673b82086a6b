//! Hosts of real MCP servers, over stdio and over HTTP: they ask for the status, and whatever else they are made to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::clock::{milliseconds, pause_until};
use crate::error::LoadError;
use crate::stage::Stage;

const STATELESS: &str = "2026-07-28";
const OLDER: &str = "2025-11-25";
const AN_ANSWER_MAY_TAKE: Duration = Duration::from_secs(60);

/// Asks in a rhythm until it is over; how long each answer took, in ms.
pub(super) fn paced(
    a_second: u32,
    over: &AtomicBool,
    mut ask: impl FnMut() -> Result<(), LoadError>,
) -> Result<Vec<f64>, LoadError> {
    let begun = Instant::now();
    let mut took = Vec::new();
    for number in 0_u32.. {
        pause_until(begun + Duration::from_secs(1) * number / a_second);
        if over.load(Ordering::Relaxed) {
            break;
        }
        let asked = Instant::now();
        ask()?;
        took.push(milliseconds(asked.elapsed()));
    }
    Ok(took)
}

/// The status of one state directory, as a host asks for it.
fn question() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "_codex_local_status", "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
}

fn is_an_answer(text: &str) -> Result<(), LoadError> {
    match text.contains(" running, ") {
        true => Ok(()),
        false => Err(LoadError::ServerGone),
    }
}

pub(super) struct OverStdio {
    pub(super) child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl OverStdio {
    pub(super) fn start(stage: &Stage, agent: &Path) -> Result<OverStdio, LoadError> {
        let mut command = stage.call(agent, &["serve"]);
        let mut child =
            command.stdin(Stdio::piped()).spawn().map_err(LoadError::io("start a server on stdio"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (questions, answers) = pipes.ok_or(LoadError::ServerGone)?;
        let mut server = OverStdio { child, questions, answers: BufReader::new(answers) };
        server.ask()?;
        Ok(server)
    }

    pub(super) fn ask(&mut self) -> Result<(), LoadError> {
        writeln!(self.questions, "{}", question()).map_err(LoadError::io("ask over stdio"))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(LoadError::io("be answered over stdio"))?;
        is_an_answer(&line)
    }
}

pub(super) struct OverHttp {
    pub(super) child: Child,
    address: String,
    token: String,
}

impl OverHttp {
    pub(super) fn start(stage: &Stage, agent: &Path) -> Result<OverHttp, LoadError> {
        let mut command = stage.call(agent, &["serve", "--http", "127.0.0.1:0"]);
        let mut child =
            command.stderr(Stdio::piped()).spawn().map_err(LoadError::io("start a server on HTTP"))?;
        let said = BufReader::new(child.stderr.take().ok_or(LoadError::ServerGone)?);
        let address = said
            .lines()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_suffix("/mcp")?.rsplit_once("http://")?.1.to_owned()));
        let token = std::fs::read_to_string(stage.state_dir().join("http-token"));
        let token = token.map_err(LoadError::io("read the token"))?.trim().to_owned();
        let server = OverHttp { child, address: address.ok_or(LoadError::ServerGone)?, token };
        server.ask()?;
        Ok(server)
    }

    pub(super) fn ask(&self) -> Result<(), LoadError> {
        let headers = format!(
            "MCP-Protocol-Version: {STATELESS}\r\nMcp-Method: tools/call\r\nMcp-Name: _codex_local_status\r\n"
        );
        is_an_answer(&self.exchange("POST", &headers, &question().to_string())?)
    }

    pub(super) fn connect(&self) -> Result<TcpStream, LoadError> {
        let connected = TcpStream::connect(&self.address).and_then(|stream| {
            stream.set_read_timeout(Some(AN_ANSWER_MAY_TAKE))?;
            stream.set_write_timeout(Some(AN_ANSWER_MAY_TAKE))?;
            Ok(stream)
        });
        connected.map_err(LoadError::io("connect"))
    }

    /// The headers of a request, with the token, up to and with the empty line.
    pub(super) fn head(&self, method: &str, more: &str) -> String {
        let OverHttp { address, token, .. } = self;
        format!(
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{more}\r\n"
        )
    }

    /// Sends a request and leaves the answer to be read.
    pub(super) fn begin(&self, method: &str, more: &str, body: &str) -> Result<TcpStream, LoadError> {
        let more = format!("{more}Connection: close\r\nContent-Length: {}\r\n", body.len());
        let mut stream = self.connect()?;
        let sent = stream.write_all((self.head(method, &more) + body).as_bytes());
        sent.map_err(LoadError::io("ask over HTTP"))?;
        Ok(stream)
    }

    pub(super) fn exchange(&self, method: &str, more: &str, body: &str) -> Result<String, LoadError> {
        let mut answer = String::new();
        let read = self.begin(method, more, body)?.read_to_string(&mut answer);
        read.map_err(LoadError::io("be answered over HTTP"))?;
        Ok(answer)
    }

    /// `initialize` in the older era.
    pub(super) fn greet(&self) -> Result<String, LoadError> {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": OLDER, "capabilities": {}, "clientInfo": {"name": "load", "version": "1"},
        }});
        self.exchange("POST", "", &hello.to_string())
    }

    /// The headers of a new session.
    pub(super) fn session(&self) -> Result<String, LoadError> {
        let greeting = self.greet()?;
        let id = greeting.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let id = id.ok_or(LoadError::Refused { answer: greeting.clone() })?;
        let headers = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: {OLDER}\r\n");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.exchange("POST", &headers, &initialized.to_string())?;
        Ok(headers)
    }
}
