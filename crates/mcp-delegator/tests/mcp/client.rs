//! An MCP client over stdio: starts the server, writes lines, reads lines. Every line from the server must be a message.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use delegator_testkit::answers;
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;

/// Long enough for any machine; no test waits for it to expire.
pub(crate) const LONG_TIMEOUT: Duration = Duration::from_secs(60);

/// How a client introduces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// One `initialize` request with a protocol version.
    Handshake(&'static str),
    /// Client information in every request.
    Stateless,
}

pub(crate) const V2025_06: Era = Era::Handshake("2025-06-18");
pub(crate) const V2025_11: Era = Era::Handshake("2025-11-25");
pub(crate) const V2026_07: Era = Era::Stateless;
pub(crate) const ERAS: [Era; 3] = [V2025_06, V2025_11, V2026_07];
pub(crate) const STATELESS_VERSION: &str = "2026-07-28";

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    pending: VecDeque<Value>,
    next_id: u64,
    era: Era,
    capabilities: Value,
}

impl Client {
    /// Starts a server in a stage's world and initializes it.
    pub(crate) fn connect(stage: &Stage, era: Era) -> Client {
        Client::connect_with(stage, era, &[], json!({}))
    }

    pub(crate) fn connect_with(stage: &Stage, era: Era, args: &[&str], capabilities: Value) -> Client {
        let mut client = Client::start(stage, args);
        client.capabilities = capabilities;
        client.initialize(era);
        client
    }

    /// Starts a server without initializing it.
    pub(crate) fn start(stage: &Stage, args: &[&str]) -> Client {
        let mut command = stage.world.command([&["serve"], args].concat());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Client::wrap(command.spawn().unwrap())
    }

    pub(crate) fn wrap(mut child: Child) -> Client {
        let (sender, lines) = channel();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut line = String::new();
            while output.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({"unreadable": line}));
                if sender.send(message).is_err() {
                    return;
                }
                line.clear();
            }
        });
        let stdin = child.stdin.take();
        let capabilities = json!({});
        Client { child, stdin, lines, pending: VecDeque::new(), next_id: 1, era: V2026_07, capabilities }
    }

    /// Initializes the connection and returns the response.
    pub(crate) fn initialize(&mut self, era: Era) -> Value {
        self.era = era;
        match era {
            Era::Handshake(version) => {
                let info = json!({"name": "a-test", "version": "1"});
                let params = json!({
                    "protocolVersion": version, "capabilities": self.capabilities, "clientInfo": info,
                });
                let response = self.request("initialize", params);
                self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                response
            }
            Era::Stateless => self.request("server/discover", json!({})),
        }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a request without waiting; returns its id.
    pub(crate) fn send_request(&mut self, method: &str, mut params: Value) -> u64 {
        if self.era == Era::Stateless {
            let meta = params["_meta"].take();
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
                "io.modelcontextprotocol/clientInfo": {"name": "a-test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
            for (key, value) in meta.as_object().into_iter().flatten() {
                params["_meta"][key] = value.clone();
            }
        }
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Returns the next message that matches; other messages are queued.
    pub(crate) fn wait_for(&mut self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.pending.iter().position(&matches) {
            return self.pending.remove(at).unwrap();
        }
        loop {
            let message = match self.lines.recv_timeout(LONG_TIMEOUT) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("{what} did not arrive: {:?}", self.pending),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the server exited before {what}: {}", self.stderr())
                }
            };
            assert!(message.get("unreadable").is_none(), "not a message on stdout: {message}");
            answers::check(&message);
            if matches(&message) {
                return message;
            }
            self.pending.push_back(message);
        }
    }

    pub(crate) fn response(&mut self, id: u64) -> Value {
        self.wait_for(&format!("the response to {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params);
        self.response(id)
    }

    /// Sends a tool call without waiting; returns its id.
    pub(crate) fn start_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send_request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The result of a tool call.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.start_call(tool, arguments);
        result(self.response(id))
    }

    /// The JSON envelope of a tool call.
    pub(crate) fn envelope(&mut self, tool: &str, mut arguments: Value) -> Value {
        arguments["format"] = json!("json");
        let result = self.call(tool, arguments);
        let envelope = result["structuredContent"].clone();
        let is_error = envelope["status"] == "error";
        assert_eq!(result["isError"].as_bool().unwrap_or(false), is_error, "{result}");
        envelope
    }

    pub(crate) fn exec(&mut self) -> String {
        let envelope = self.envelope("_codex_local_exec", json!({"task": "do it"}));
        envelope["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{envelope}")).to_owned()
    }

    /// Messages that were received and not yet matched.
    pub(crate) fn pending(&self) -> &VecDeque<Value> {
        &self.pending
    }

    /// Closes stdin and waits for the exit; returns exit code and stderr.
    pub(crate) fn close(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        self.wait_for_exit()
    }

    /// Waits for the exit; returns exit code and stderr. Every remaining line must be a message.
    pub(crate) fn wait_for_exit(mut self) -> (Option<i32>, String) {
        let stderr = self.stderr();
        let exit = self.child.wait().unwrap().code();
        for message in self.lines.iter() {
            assert!(message.get("unreadable").is_none(), "not a message on stdout: {message}");
        }
        (exit, stderr)
    }

    fn stderr(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut text).unwrap();
        }
        text
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn result(reply: Value) -> Value {
    assert!(reply.get("error").is_none(), "{reply}");
    reply["result"].clone()
}

/// The text content of a tool result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// A stage whose agents complete at once.
pub(crate) fn quick_stage() -> Stage {
    Stage::with_script(PROGRAM, successful_turn(&[])).variable("MCP_DELEGATOR_MAX_CONCURRENT", "8")
}

/// A stage whose agents wait for the file `go`.
pub(crate) fn waiting_stage() -> Stage {
    Stage::with_script(PROGRAM, successful_turn(&[json!({"wait_for_file": "go"})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "8")
}

pub(crate) fn release_agents(stage: &Stage) {
    std::fs::write(stage.world.project().join("go"), "").unwrap();
}
