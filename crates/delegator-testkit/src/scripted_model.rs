//! A model server on a loopback port that any agent can use: it has no state and speaks the Responses, the Messages and the Chat
//! Completions API.
//!
//! The prompt names a script: the last text of the user that contains `[script NAME]` selects it, and the number of tool
//! results after that text tells the step. So requests beside the conversation (titles, summaries) do not disturb it, and a
//! resumed thread continues. A step says what the model does in neutral terms; the tool that it calls is chosen among those
//! that the agent offers in its request.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::fake_model::{http_error, messages_body, responses_body};

mod chat;
mod conversation;
mod tools;

use conversation::{Api, Position};

/// What the model does in one step.
#[derive(Debug, Clone)]
pub enum Action {
    Say(&'static str),
    /// A command for the shell.
    Run(String),
    /// A command that needs permission, because it is to run outside of Codex's sandbox.
    RunUnsandboxed(String),
    WriteFile {
        path: PathBuf,
        text: &'static str,
    },
    /// The request fails with this status and body.
    Fail {
        status: u16,
        body: Value,
    },
    /// The reply comes when the test has called [`ScriptedModel::release`].
    Hold,
}

/// The steps of a script, each a reply of the model.
pub type Script = Vec<Vec<Action>>;

#[derive(Debug, Default)]
struct Shared {
    scripts: BTreeMap<&'static str, Script>,
    requests: Mutex<Vec<Value>>,
    is_released: Mutex<bool>,
    released: Condvar,
}

/// Serves until the test process ends.
#[derive(Debug)]
pub struct ScriptedModel {
    pub port: u16,
    shared: Arc<Shared>,
}

impl ScriptedModel {
    pub fn start(scripts: impl IntoIterator<Item = (&'static str, Script)>) -> ScriptedModel {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared { scripts: scripts.into_iter().collect(), ..Shared::default() });
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                std::thread::spawn(move || serve(stream, &served));
            }
        });
        ScriptedModel { port, shared }
    }

    /// The base address, without a path.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Lets all held replies come.
    pub fn release(&self) {
        *self.shared.is_released.lock().unwrap() = true;
        self.shared.released.notify_all();
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) {
    let Some((path, request)) = read_request(&stream) else { return };
    let Some(api) = Api::of_path(&path) else {
        let _ = stream.write_all(http_error(404, &json!({"error": {"message": "not found"}})).as_bytes());
        return;
    };
    shared.requests.lock().unwrap().push(request.clone());
    let reply = reply(api, &request, shared);
    // The write fails if the agent was stopped in the meantime.
    let _ = stream.write_all(reply.as_bytes());
}

fn read_request(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split_ascii_whitespace().nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? <= 2 {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, serde_json::from_slice(&body).unwrap_or_default()))
}

fn reply(api: Api, request: &Value, shared: &Shared) -> String {
    let offered = tools::offered(request);
    let position = Position::find(api, request, shared.scripts.keys().copied());
    let step = position
        .filter(|_| !offered.is_empty())
        .and_then(|Position { script, results }| step_after(&shared.scripts[script], results));
    // A request beside the conversation.
    let Some(actions) = step else { return body(api, vec![api.text("A title")]) };
    let mut items = Vec::new();
    for action in actions {
        match action {
            Action::Say(text) => items.push(api.text(text)),
            Action::Fail { status, body } => return http_error(*status, body),
            Action::Hold => {
                let is_released = shared.is_released.lock().unwrap();
                drop(shared.released.wait_while(is_released, |is_released| !*is_released).unwrap());
            }
            Action::Run(_) | Action::RunUnsandboxed(_) | Action::WriteFile { .. } => {
                items.push(tools::call(api, &offered, action, items.len()));
            }
        }
    }
    body(api, items)
}

/// The step that follows so many results of tools: the results of all its calls end a step. The last step repeats.
fn step_after(steps: &Script, mut results: usize) -> Option<&Vec<Action>> {
    let is_call = |action: &&Action| {
        matches!(action, Action::Run(_) | Action::RunUnsandboxed(_) | Action::WriteFile { .. })
    };
    let mut has_ended = |step: &&Vec<Action>| {
        let calls = step.iter().filter(is_call).count();
        let has_ended = calls > 0 && results >= calls;
        results = results.saturating_sub(calls);
        has_ended
    };
    steps.iter().find(|step| !has_ended(step)).or(steps.last())
}

fn body(api: Api, items: Vec<Value>) -> String {
    match api {
        Api::Responses => responses_body(&items),
        Api::Messages => messages_body(&items),
        Api::Chat => chat::chat_body(&items),
    }
}
