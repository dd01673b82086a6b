//! A fake model server on a loopback port. It streams scripted replies as server-sent events, over the protocol of
//! Codex (Responses API) or of Claude Code (Messages API).
//!
//! A script cannot know the id that a task will get: the server replaces [`TASK_PLACEHOLDER`] by the last task id
//! in the request, and [`NUMBERED_PLACEHOLDER`] with a number by the first, second, … one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

mod messages;

pub(crate) use messages::messages_body;

/// Placeholder for the last task id in the request.
pub const TASK_PLACEHOLDER: &str = "T-the-task";
/// With a number from 1: placeholder for the task id that appears at this place in the request.
pub const NUMBERED_PLACEHOLDER: &str = "T-task-";

/// The API that the server implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Responses,
    Messages,
}

/// The reply to one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Output items, then the end of the response.
    Output(Vec<Value>),
    /// A plain HTTP error.
    HttpError { status: u16, body: Value },
}

/// Serves until the test process ends. The n-th request gets the n-th reply; the last one repeats.
#[derive(Debug)]
pub struct FakeModel {
    pub port: u16,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl FakeModel {
    /// Starts a server with the Responses API.
    pub fn start(replies: Vec<Reply>) -> FakeModel {
        FakeModel::start_with_protocol(Protocol::Responses, replies)
    }

    pub fn start_with_protocol(protocol: Protocol, replies: Vec<Reply>) -> FakeModel {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (received, request_count) = (Arc::clone(&requests), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (replies, received, request_count) =
                    (replies.clone(), Arc::clone(&received), Arc::clone(&request_count));
                std::thread::spawn(move || {
                    handle_request(stream, protocol, &replies, (&received, &request_count))
                });
            }
        });
        FakeModel { port, requests }
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }

    /// A Codex configuration that uses only this server.
    pub fn codex_config(&self) -> String {
        codex_config(self.port)
    }
}

/// A Codex configuration for a model server on any port, even one without a server.
pub fn codex_config(port: u16) -> String {
    format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"fake\"\ncheck_for_update_on_startup = false\nweb_search = \"disabled\"\n\
         [model_providers.fake]\nname = \"fake\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nwire_api = \"responses\"\n\
         requires_openai_auth = false\nsupports_websockets = false\nrequest_max_retries = 1\nstream_max_retries = 1\n\
         [analytics]\nenabled = false\n[feedback]\nenabled = false\n[otel]\nexporter = \"none\"\n\
         [features]\nenable_request_compression = false\napps = false\nplugins = false\n"
    )
}

/// A final message of the agent.
pub fn message(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": text}]})
}

/// A command for the agent to run.
pub fn command(text: &str) -> Value {
    json!({
        "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "exec_command",
        "arguments": json!({"cmd": text}).to_string(),
    })
}

/// A patch for the agent to apply.
pub fn patch(text: &str) -> Value {
    json!({
        "type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "apply_patch", "input": text,
        "status": "completed",
    })
}

/// A search for tools that the client has not listed yet.
pub fn tool_search(query: &str) -> Value {
    json!({
        "type": "tool_search_call", "id": "tsc_1", "call_id": "call_3", "execution": "client", "status": "completed",
        "arguments": {"query": query, "limit": 30},
    })
}

/// A call of an MCP tool, as Codex names it.
pub fn mcp_call(server: &str, tool: &str, input: &Value) -> Value {
    let number = next_call_number();
    json!({
        "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"), "name": tool,
        "namespace": format!("mcp__{server}"), "arguments": input.to_string(),
    })
}

/// A call of any tool, over the Messages API.
pub fn tool_use(tool: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": format!("toolu_{}", next_call_number()), "name": tool, "input": input})
}

/// Clients match results with calls by id, so each call of a script needs its own.
fn next_call_number() -> usize {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    // `command`, `patch` and `tool_search` have fixed ids below 10.
    CALLS.fetch_add(1, Ordering::SeqCst) + 10
}

/// A final message, over the Messages API.
pub fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn handle_request(
    mut stream: TcpStream,
    protocol: Protocol,
    replies: &[Reply],
    (received, request_count): (&Mutex<Vec<Value>>, &AtomicUsize),
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut length, mut is_post) = (String::new(), 0, false);
    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
        let lower = line.to_lowercase();
        is_post |= lower.starts_with("post ");
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() || !is_post {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let task_ids = task_ids(&request);
    received.lock().unwrap().push(request);
    let turn = request_count.fetch_add(1, Ordering::SeqCst).min(replies.len() - 1);
    let text = match &replies[turn] {
        Reply::HttpError { status, body } => http_error(*status, body),
        Reply::Output(items) => {
            let items: Vec<Value> = serde_json::from_str(&with_task_ids(json!(items), &task_ids)).unwrap();
            match protocol {
                Protocol::Responses => responses_body(&items),
                Protocol::Messages => messages_body(&items),
            }
        }
    };
    // The write fails if the agent was stopped in the meantime.
    let _ = stream.write_all(text.as_bytes());
}

/// A response with an error status.
pub(crate) fn http_error(status: u16, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status} No\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

pub(crate) fn responses_body(items: &[Value]) -> String {
    let mut events =
        vec![json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}})];
    for (index, item) in items.iter().enumerate() {
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": {
        "id": "resp_1", "status": "completed",
        "usage": {
            "input_tokens": 100, "input_tokens_details": {"cached_tokens": 40},
            "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 120,
        },
    }}));
    event_stream(&events)
}

/// All task ids in the request, in order, with repetitions.
fn task_ids(request: &Value) -> Vec<String> {
    let text = request.to_string();
    let is_id = |letter: &char| letter.is_ascii_alphanumeric();
    let ids = text.split("T-local-").skip(1).map(|rest| rest.chars().take_while(is_id).collect());
    ids.filter(|id: &String| id.len() >= 10).map(|id| format!("T-local-{id}")).collect()
}

/// The script with its placeholders replaced, as far as the request has ids.
fn with_task_ids(script: Value, ids: &[String]) -> String {
    let mut text = script.to_string();
    if let Some(last) = ids.last() {
        text = text.replace(TASK_PLACEHOLDER, last);
    }
    let mut distinct: Vec<&String> = Vec::new();
    for id in ids {
        if !distinct.contains(&id) {
            distinct.push(id);
        }
    }
    for (at, id) in distinct.iter().enumerate() {
        text = text.replace(&format!("{NUMBERED_PLACEHOLDER}{}", at + 1), id);
    }
    text
}

fn event_stream(events: &[Value]) -> String {
    let mut text =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_owned();
    for event in events {
        text.push_str(&format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()));
    }
    text
}
