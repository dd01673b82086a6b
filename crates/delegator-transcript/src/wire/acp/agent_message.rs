//! Messages of the agent.

use delegator_domain::question::OptionKind;

use crate::event::Todo;
use crate::json::{Ending, Object, Text, Value};
use crate::wire::json_rpc::{Message, RequestId, RpcError};

use super::tool_call::{ToolCall, plan_step, text_of_content};
use super::usage::TokenCounts;

/// Every request has to be answered. `Result` (JSON) and `Error` answer our requests.
#[derive(Clone, Debug)]
pub enum AgentMessage<'a> {
    Update(Update<'a>),
    PermissionRequest { id: RequestId, request: Box<PermissionRequest<'a>> },
    OtherRequest { id: RequestId, method: Text<'a> },
    OtherNotification,
    Result { id: RequestId, result: &'a str },
    Error { id: Option<RequestId>, error: RpcError<'a> },
}

#[derive(Clone, Debug)]
pub enum Update<'a> {
    MessageChunk(Chunk<'a>),
    ThoughtChunk(Chunk<'a>),
    /// `tool_call` and `tool_call_update`: both set what they contain, in any order.
    ToolCall(Box<ToolCall<'a>>),
    /// `plan`: the whole plan.
    Plan(Vec<Todo<'a>>),
    /// `usage_update` with the cost of the session so far, in dollars.
    Cost(f64),
    /// `notice`: a warning.
    Notice(Text<'a>),
    SessionInfo(SessionInfo<'a>),
    Other,
}

#[derive(Clone, Debug)]
pub struct Chunk<'a> {
    /// Empty if the content is not text.
    pub text: Text<'a>,
    /// Chunks of one message have the same id; not all agents write one.
    pub message_id: Option<Text<'a>>,
    /// The tokens of one call of the model (Qwen Code).
    pub(crate) usage: Option<TokenCounts>,
}

/// State of the session that decides about a turn (codex-acp).
#[derive(Clone, Debug, Default)]
pub struct SessionInfo<'a> {
    /// Only codex-acp writes its members.
    pub is_codex: bool,
    /// An error after which the agent retries.
    pub retried_error: Option<Text<'a>>,
    /// The turn failed, whatever its stop reason.
    pub has_failed: bool,
}

#[derive(Clone, Debug)]
pub struct PermissionRequest<'a> {
    pub call: ToolCall<'a>,
    pub options: Vec<PermissionOption<'a>>,
}

#[derive(Clone, Debug)]
pub struct PermissionOption<'a> {
    pub id: Text<'a>,
    /// What a user is shown.
    pub name: Text<'a>,
    /// What the option means. Ids and order differ between agents.
    pub kind: OptionKind,
}

impl<'a> AgentMessage<'a> {
    /// Reads a line of the agent, or the beginning of an over-long one. `None` if it is no message.
    pub fn read(line: &'a str) -> Option<Self> {
        let members = Object::read(line);
        let message = Message::from_members(&members).filter(|_| members.ending != Ending::Invalid);
        message.map(Self::from_message)
    }

    pub(crate) fn from_message(message: Message<'a>) -> Self {
        match message {
            Message::Request { id, method, params } => match method.simple() {
                Some("session/request_permission") => {
                    let request = Box::new(PermissionRequest::read(params));
                    Self::PermissionRequest { id, request }
                }
                _ => Self::OtherRequest { id, method },
            },
            Message::Notification { method, params } => match method.simple() {
                Some("session/update") => Self::Update(Update::read(params)),
                _ => Self::OtherNotification,
            },
            Message::Result { id, result } => Self::Result { id, result },
            Message::Error { id, error } => Self::Error { id, error },
        }
    }
}

impl<'a> PermissionRequest<'a> {
    fn read(params: &'a str) -> Self {
        let params = Object::read(params);
        let option = |option: Value<'a>| {
            let option = option.object()?;
            Some(PermissionOption {
                id: option.text("optionId")?,
                name: option.text("name").unwrap_or_default(),
                kind: option.first(&["kind"], Value::variant).unwrap_or(OptionKind::Other),
            })
        };
        Self {
            call: params.object("toolCall").map(|call| ToolCall::read(&call)).unwrap_or_default(),
            options: params.list(&["options"], option),
        }
    }
}

impl<'a> Update<'a> {
    fn read(params: &'a str) -> Self {
        let update = Object::read(params).object("update").unwrap_or_default();
        let kind = update.text("sessionUpdate").unwrap_or_default();
        match kind.simple().unwrap_or_default() {
            "agent_message_chunk" => Self::MessageChunk(Chunk::read(&update)),
            "agent_thought_chunk" => Self::ThoughtChunk(Chunk::read(&update)),
            "tool_call" | "tool_call_update" => Self::ToolCall(Box::new(ToolCall::read(&update))),
            "plan" => Self::Plan(update.list(&["entries"], plan_step)),
            "usage_update" => update.object("cost").as_ref().and_then(cost).map_or(Self::Other, Self::Cost),
            "notice" => {
                let texts = [update.text("title"), update.text("description")];
                Self::Notice(Text::joined(texts.into_iter().flatten(), ": "))
            }
            "session_info_update" => Self::SessionInfo(SessionInfo::read(&update)),
            _ => Self::Other,
        }
    }
}

impl<'a> Chunk<'a> {
    fn read(update: &Object<'a>) -> Self {
        let usage = || update.object("_meta")?.first(&["usage"], TokenCounts::read);
        Self {
            text: update.first(&["content"], text_of_content).unwrap_or_default(),
            message_id: update.text("messageId"),
            usage: usage(),
        }
    }
}

impl<'a> SessionInfo<'a> {
    /// `_meta.codex.error` and `_meta.codex.threadStatus`.
    fn read(update: &Object<'a>) -> Self {
        let codex = update.object("_meta").and_then(|meta| meta.object("codex"));
        let is_codex = codex.is_some();
        let codex = codex.unwrap_or_default();
        let retried_error = || {
            let error = codex.object("error")?;
            let will_retry = error.first(&["willRetry"], Value::boolean)?;
            error.text("message").filter(|_| will_retry)
        };
        let status = codex.object("threadStatus").and_then(|status| status.text("type"));
        let has_failed = status.is_some_and(|status| status == *"systemError");
        Self { is_codex, retried_error: retried_error(), has_failed }
    }
}

/// Only dollars: no agent reports another currency, and amounts of two currencies cannot be compared.
fn cost(cost: &Object<'_>) -> Option<f64> {
    let is_dollars = cost.text("currency").is_none_or(|currency| currency == *"USD");
    let amount: f64 = cost.raw("amount")?.parse().ok()?;
    Some(amount).filter(|amount| is_dollars && amount.is_finite() && *amount >= 0.0)
}
