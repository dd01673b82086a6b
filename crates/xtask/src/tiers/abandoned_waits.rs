//! F61: waits of one session (protocol 2025-11-25) whose connections are gone. The client has some time to reconnect
//! for the response; then the waits end. A wait that outlived that time would read the task's result, so the result
//! must still be unread afterwards.

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Trial;
use super::mcp_clients::HttpClient;
use crate::error::LoadError;
use crate::figures::Figure;
use crate::processes::{rss_kib, threads};

const WAITS: usize = 200;
/// Longer than clients may take to reconnect.
const RECONNECT_WINDOW: Duration = Duration::from_secs(35);

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let waits = trial.scaled(WAITS, 10);
    let testbed = trial.testbed(1)?;
    let go_file = testbed.root().join("go");
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"wait_for_file": go_file}, {"turn_completed": {}}
    ]);
    let http = HttpClient::start(&testbed, &testbed.agent("waits", &steps)?)?;
    let session = Session { http: &http, headers: http.open_session()?, last_request_id: Cell::new(1) };
    let task = session.call("_codex_local_exec", json!({"task": "do it"}))?;
    let id = task["data"]["task_id"].as_str().ok_or(LoadError::Refused { response: task.to_string() })?;
    let before = rss_kib(http.child.id()).ok_or(LoadError::ServerGone)?;
    let waiting = (0..waits).map(|_| session.wait(id)).collect::<Result<Vec<_>, _>>()?;
    drop(waiting);
    let started = Instant::now();
    session.call("_codex_local_status", json!({}))?;
    let next_response_ms = started.elapsed().as_secs_f64() * 1000.0;
    trial.deadline.sleep("waiting until the time to reconnect is over", RECONNECT_WINDOW)?;
    std::fs::write(&go_file, "").map_err(LoadError::io("create the go file"))?;
    let mut status = Value::Null;
    trial.deadline.wait_until("waiting for the task", Duration::from_secs(60), || {
        status = session.call("_codex_local_status", json!({}))?;
        Ok(status["data"]["summary"]["recently_completed"] == 1)
    })?;
    let is_read = status["data"]["unread"]["count"] != 1;
    let after = rss_kib(http.child.id()).ok_or(LoadError::ServerGone)?;
    Ok(vec![
        Figure::count("abandoned waits", waits),
        Figure::unbounded("next response in the session", next_response_ms, "ms"),
        Figure::must_be_zero("results marked as read without a reader", usize::from(is_read)),
        Figure::unbounded("server, growth (RSS)", after.saturating_sub(before) as f64 / 1024.0, "MiB"),
        Figure::count("server, threads", threads(http.child.id())),
    ])
}

struct Session<'a> {
    http: &'a HttpClient,
    headers: String,
    last_request_id: Cell<usize>,
}

impl Session<'_> {
    fn message(&self, tool: &str, arguments: &Value) -> String {
        let id = self.last_request_id.get() + 1;
        self.last_request_id.set(id);
        let meta = json!({"progressToken": id});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    }

    fn call(&self, tool: &str, mut arguments: Value) -> Result<Value, LoadError> {
        arguments["format"] = json!("json");
        let response = self.http.exchange("POST", &self.headers, &self.message(tool, &arguments))?;
        let mut messages = response
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        let result = messages.find_map(|message| Some(message.get("result")?["structuredContent"].clone()));
        result.ok_or(LoadError::Refused { response })
    }

    /// Starts a wait and reads its stream up to the first progress notification.
    fn wait(&self, task: &str) -> Result<BufReader<std::net::TcpStream>, LoadError> {
        let message = self.message("_codex_local_wait", &json!({"task_id": task, "timeout_sec": 600}));
        let mut reader = BufReader::new(self.http.send_request("POST", &self.headers, &message)?);
        let mut line = String::new();
        while !line.contains("notifications/progress") {
            line.clear();
            let count = reader.read_line(&mut line).map_err(LoadError::io("read the stream of a wait"))?;
            if count == 0 {
                return Err(LoadError::ServerGone);
            }
        }
        Ok(reader)
    }
}
