//! One connection to an MCP server over stdio.
//!
//! A thread reads the responses and notes when each one arrived. Requests may be answered in any order. Every wait is
//! bounded. Dropping a session kills the server.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use delegator_domain::text::shorten;
use serde_json::{Value, json};

use super::peers::{Inserted, ToolCall, to_json};
use crate::clock::{monotonic_ns, sleep};
use crate::error::LoadError;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// After its input is closed, until a server is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
const PROTOCOL_VERSION: &str = "2025-06-18";
/// Bytes of a response or of an error output that are reported.
const EXCERPT: usize = 160;

#[derive(Debug)]
pub(crate) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    received: Receiver<(i64, Value)>,
    /// Responses that arrived before they were awaited.
    early: HashMap<u64, ToolResponse>,
    next_id: u64,
    stderr: PathBuf,
}

/// A response, and when it arrived (monotonic clock, nanoseconds).
#[derive(Debug, Clone)]
pub(crate) struct ToolResponse {
    pub(crate) at_ns: i64,
    body: Value,
}

impl ToolResponse {
    /// The text of a tool's result. An error response and a result marked as an error are errors.
    pub(crate) fn text(&self) -> Result<String, LoadError> {
        let content = self.body["result"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<&str> = content.iter().filter_map(|part| part["text"].as_str()).collect();
        if self.body["result"]["isError"] == true || self.body.get("error").is_some() {
            let message = self.body["error"]["message"].as_str().map_or(texts.join(" "), str::to_owned);
            return Err(LoadError::Refused { response: excerpt(&message) });
        }
        Ok(texts.join("\n"))
    }
}

impl Session {
    /// Starts a server and initializes the connection. Also returns the milliseconds from before the start of the
    /// process to the response.
    pub(crate) fn open(mut command: Command, stderr: &Path) -> Result<(Session, f64), LoadError> {
        let log = File::create(stderr).map_err(LoadError::io("create the error log"))?;
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(LoadError::io("start the server"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(LoadError::ServerGone);
        };
        let (sender, received) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let at_ns = monotonic_ns();
                // Some servers print their log to stdout.
                let Ok(message) = serde_json::from_str(&line) else { continue };
                if sender.send((at_ns, message)).is_err() {
                    break;
                }
            }
        });
        let (stderr, early) = (stderr.to_owned(), HashMap::new());
        let mut session = Session { child, input: Some(input), received, early, next_id: 0, stderr };
        let client = json!({"name": "race", "version": "1"});
        let params = json!({"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client});
        session.exchange("initialize", params)?;
        let elapsed = started.elapsed().as_secs_f64() * 1000.0;
        session.notify("notifications/initialized", json!({}))?;
        Ok((session, elapsed))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The tools as the server lists them.
    pub(crate) fn list_tools(&mut self) -> Result<Vec<Value>, LoadError> {
        let response = self.exchange("tools/list", json!({}))?;
        response.body["result"]["tools"]
            .as_array()
            .cloned()
            .ok_or_else(|| LoadError::Refused { response: excerpt(&response.body.to_string()) })
    }

    /// Calls a tool and waits for its response.
    pub(crate) fn call(&mut self, call: ToolCall, inserted: Inserted<'_>) -> Result<ToolResponse, LoadError> {
        let id = self.send_call(call, inserted)?;
        self.response_to(id)
    }

    /// Sends a call without waiting for it. Returns the id of the request.
    pub(crate) fn send_call(&mut self, call: ToolCall, inserted: Inserted<'_>) -> Result<u64, LoadError> {
        let arguments = to_json(call.arguments, inserted);
        self.send_request("tools/call", json!({"name": call.tool, "arguments": arguments}))
    }

    pub(crate) fn cancel_request(&mut self, id: u64) -> Result<(), LoadError> {
        self.notify("notifications/cancelled", json!({"requestId": id, "reason": "the user cancelled it"}))
    }

    pub(crate) fn response_to(&mut self, id: u64) -> Result<ToolResponse, LoadError> {
        loop {
            if let Some(response) = self.early.remove(&id) {
                return Ok(response);
            }
            let (arrived, response) = self.next_response()?;
            self.early.insert(arrived, response);
        }
    }

    /// The next response to any request. Notifications and requests of the server are ignored.
    pub(crate) fn next_response(&mut self) -> Result<(u64, ToolResponse), LoadError> {
        let deadline = Instant::now() + RESPONSE_TIMEOUT;
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            let (at_ns, body) = match self.received.recv_timeout(rest) {
                Ok(received) => received,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(LoadError::OutOfTime { doing: "waiting for a response".to_owned() });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.exit_reason()),
            };
            let is_response = body.get("result").is_some() || body.get("error").is_some();
            if let Some(id) = body["id"].as_u64().filter(|_| is_response) {
                return Ok((id, ToolResponse { at_ns, body }));
            }
        }
    }

    fn exchange(&mut self, method: &str, params: Value) -> Result<ToolResponse, LoadError> {
        let id = self.send_request(method, params)?;
        self.response_to(id)
    }

    fn send_request(&mut self, method: &str, params: Value) -> Result<u64, LoadError> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    fn notify(&mut self, method: &str, params: Value) -> Result<(), LoadError> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn send(&mut self, message: &Value) -> Result<(), LoadError> {
        let line = format!("{message}\n");
        let sent = self.input.as_mut().map(|input| input.write_all(line.as_bytes()));
        match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(self.exit_reason()),
        }
    }

    /// The last line the server printed to stderr.
    fn exit_reason(&self) -> LoadError {
        let log = std::fs::read(&self.stderr).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no error output");
        LoadError::Program { program: "the server".to_owned(), output: excerpt(last.trim()) }
    }

    /// Closes the input and waits for the exit.
    pub(crate) fn close(mut self) {
        self.input.take();
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            sleep(Duration::from_millis(5));
        }
    }

    /// Sends SIGKILL and reaps the server.
    pub(crate) fn kill(mut self) {
        self.kill_and_reap();
    }

    fn kill_and_reap(&mut self) {
        // It may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.kill_and_reap();
    }
}

/// The beginning of a text, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    shorten(&text.split_whitespace().collect::<Vec<&str>>().join(" "), EXCERPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(body: Value) -> ToolResponse {
        ToolResponse { at_ns: 0, body }
    }

    #[test]
    fn error_results_and_error_responses_are_errors() {
        let content = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
        let ok = response(json!({"result": {"content": content}}));
        assert_eq!(ok.text().unwrap(), "one\ntwo");
        assert!(response(json!({"result": {"content": content, "isError": true}})).text().is_err());
        assert!(response(json!({"error": {"code": -1, "message": "no"}})).text().is_err());
    }

    #[test]
    fn excerpts_are_one_short_line() {
        assert_eq!(excerpt("a\n  b"), "a b");
        assert_eq!(excerpt(&"ü".repeat(500)).chars().count(), EXCERPT + 1);
    }
}
