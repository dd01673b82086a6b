//! Messages of Codex's app server: JSON-RPC without the member `jsonrpc`, one message per line.
//!
//! Measured with 0.166. A thread is begun or resumed, then turns run on it. The response to `turn/start`
//! comes at once; the end of the turn is the notification `turn/completed`. Sub-agents have threads of their
//! own, whose notifications arrive on the same connection: every notification about a turn names its thread.
//! Names are in camel case; the content is that of Codex exec events.

mod item;
mod request;
mod write;

pub use item::{ServerItem, TurnItem};
pub use request::{ApprovalRequest, ServerRequest, UserInputQuestion};
pub use write::{
    Approval, ApprovalPolicy, Client, Input, SandboxMode, ThreadOptions, TurnOptions, WrittenAnswer,
    answer_approval, answer_user_input, clean_background_terminals, initialize, initialized, interrupt_turn,
    refuse_permissions, refuse_request, resume_thread, start_thread, start_turn, steer_turn,
};

use super::json_rpc::{Message, RequestId, request_id};
use crate::event::{AgentError, Todo, TurnOutcome, Usage};
use crate::json::{Object, Text, Value};
use crate::values::{error_object, read_todos, read_usage};

/// A request that we sent, as far as its failure matters.
#[derive(Clone, Debug)]
pub struct SentRequest {
    pub id: RequestId,
    /// Without it no work is done: it begins the connection, the thread or a turn.
    pub is_essential: bool,
}

impl SentRequest {
    /// `None` if it is no request.
    pub(crate) fn from_message(message: &Message<'_>) -> Option<Self> {
        let Message::Request { id, method, .. } = message else { return None };
        let essential = ["initialize", "thread/start", "thread/resume", "turn/start"];
        let is_essential = method.simple().is_some_and(|method| essential.contains(&method));
        Some(Self { id: id.clone(), is_essential })
    }
}

#[derive(Clone, Debug)]
pub enum ServerMessage<'a> {
    Notification(ServerNotification<'a>),
    Request { id: RequestId, request: ServerRequest<'a> },
    Response { id: RequestId, response: Response<'a> },
    Error { id: Option<RequestId>, message: Text<'a> },
}

/// A response to a request of ours that begins or resumes a thread, begins a turn, or does anything else.
#[derive(Clone, Debug)]
pub enum Response<'a> {
    Thread { thread_id: Text<'a> },
    Turn { turn_id: Text<'a> },
    Other,
}

/// `OfThread` is about a thread; `Other` says nothing about the work.
#[derive(Clone, Debug)]
pub enum ServerNotification<'a> {
    ThreadStarted {
        thread_id: Text<'a>,
    },
    OfThread {
        thread_id: Text<'a>,
        event: TurnEvent<'a>,
    },
    Warning {
        message: Text<'a>,
    },
    /// When the limit that is exceeded is reset, in seconds since 1970.
    RateLimits {
        exceeded_until: Option<i64>,
    },
    Other,
}

/// What happens in a thread. The plan is the whole one, the usage the running total of the thread. An error
/// is retried or ends the turn; a warning is never a failure. A resolved request of the app server was
/// answered or is no longer needed.
#[derive(Clone, Debug)]
pub enum TurnEvent<'a> {
    Started { turn_id: Text<'a> },
    Completed { turn_id: Text<'a>, outcome: TurnOutcome<'a> },
    Item { is_completed: bool, item: ServerItem<'a> },
    Plan(Vec<Todo<'a>>),
    Usage(Usage),
    Error { message: Text<'a> },
    Warning { message: Text<'a> },
    RequestResolved { request_id: RequestId },
    Other,
}

impl<'a> ServerMessage<'a> {
    /// Reads a line. `None` if it is no message.
    pub fn read(line: &'a str) -> Option<Self> {
        Message::read(line).map(Self::from_message)
    }

    pub(crate) fn from_message(message: Message<'a>) -> Self {
        match message {
            Message::Notification { method, params } => {
                Self::Notification(notification(&method, &Object::read(params)))
            }
            Message::Request { id, method, params } => {
                Self::Request { id, request: request::read(method, params) }
            }
            Message::Result { id, result } => Self::Response { id, response: response(result) },
            Message::Error { id, error } => Self::Error { id, message: error.message },
        }
    }
}

fn response(result: &str) -> Response<'_> {
    let result = Object::read(result);
    let id_of = |key: &str| result.object(key)?.text("id");
    match (id_of("thread"), id_of("turn")) {
        (Some(thread_id), _) => Response::Thread { thread_id },
        (None, Some(turn_id)) => Response::Turn { turn_id },
        (None, None) => Response::Other,
    }
}

fn notification<'a>(method: &Text<'a>, params: &Object<'a>) -> ServerNotification<'a> {
    match method.simple().unwrap_or_default() {
        "thread/started" => match params.object("thread").and_then(|thread| thread.text("id")) {
            Some(thread_id) => ServerNotification::ThreadStarted { thread_id },
            None => ServerNotification::Other,
        },
        "account/rateLimits/updated" => ServerNotification::RateLimits {
            exceeded_until: params.object("rateLimits").and_then(|limits| exceeded_until(&limits)),
        },
        "configWarning" | "deprecationNotice" | "guardianWarning" => {
            ServerNotification::Warning { message: warning(params) }
        }
        name => match params.text("threadId") {
            Some(thread_id) => {
                let event = turn_event(name, params).unwrap_or(TurnEvent::Other);
                ServerNotification::OfThread { thread_id, event }
            }
            None if name == "warning" => ServerNotification::Warning { message: warning(params) },
            None => ServerNotification::Other,
        },
    }
}

/// If two limits are exceeded, the one that is reset later counts.
fn exceeded_until(limits: &Object<'_>) -> Option<i64> {
    let windows = ["primary", "secondary"].into_iter().filter_map(|window| limits.object(window));
    let is_exceeded = |window: &Object<'_>| window.integer("usedPercent") >= Some(100);
    windows.filter(is_exceeded).filter_map(|window| window.integer("resetsAt")).max()
}

fn warning<'a>(params: &Object<'a>) -> Text<'a> {
    let summary = params.first(&["summary", "message"], Value::text).unwrap_or_default();
    match params.text("details") {
        Some(details) => Text::owned(format!("{}: {}", summary.resolve(), details.resolve())),
        None => summary,
    }
}

fn turn_event<'a>(method: &str, params: &Object<'a>) -> Option<TurnEvent<'a>> {
    Some(match method {
        "turn/started" => TurnEvent::Started { turn_id: params.object("turn")?.text("id")? },
        "turn/completed" => {
            let turn = params.object("turn")?;
            TurnEvent::Completed { turn_id: turn.text("id").unwrap_or_default(), outcome: outcome(&turn) }
        }
        "item/started" | "item/completed" => TurnEvent::Item {
            is_completed: method == "item/completed",
            item: item::read(&params.object("item")?)?,
        },
        "turn/plan/updated" => TurnEvent::Plan(read_todos(params, "plan", "step")),
        "thread/tokenUsage/updated" => {
            let total = params.object("tokenUsage")?.object("total")?;
            TurnEvent::Usage(read_usage(&total).unwrap_or_default())
        }
        "error" => TurnEvent::Error { message: params.object("error")?.text("message")? },
        "warning" => TurnEvent::Warning { message: warning(params) },
        "serverRequest/resolved" => {
            TurnEvent::RequestResolved { request_id: params.first(&["requestId"], request_id)? }
        }
        _ => return None,
    })
}

fn outcome<'a>(turn: &Object<'a>) -> TurnOutcome<'a> {
    let status = turn.text("status").unwrap_or_default();
    match status.simple() {
        Some("completed") => TurnOutcome::Completed,
        Some("interrupted") => TurnOutcome::Interrupted,
        _ => {
            let error = turn.first(&["error"], error_object);
            TurnOutcome::Failed(error.unwrap_or(AgentError { message: status, code: None }))
        }
    }
}
