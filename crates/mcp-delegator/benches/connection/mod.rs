//! A child process that speaks JSON-RPC over its standard streams, for the benchmarks of the server.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A child process with piped stdin and stdout.
pub(crate) struct Connection {
    pub(crate) child: Child,
    responses: BufReader<ChildStdout>,
}

impl Connection {
    pub(crate) fn start(mut command: Command) -> Connection {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let responses = BufReader::new(child.stdout.take().unwrap());
        Connection { child, responses }
    }

    /// Starts a server and waits for its first response.
    pub(crate) fn initialized(command: Command) -> Connection {
        let mut connection = Connection::start(command);
        let client = json!({"name": "bench", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        connection.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        connection.read_line();
        connection
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.responses.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the process exited before it responded");
        line
    }

    /// Closes stdin and waits for the exit.
    pub(crate) fn close(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}
