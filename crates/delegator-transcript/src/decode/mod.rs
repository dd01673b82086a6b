//! Decodes one line into an [`Event`]. Decoding never fails: an unusable line becomes `NotJson` or `Unknown`.
//!
//! [`Object::read_line`] collects the top-level fields; the dialect is decided afterwards, so the order of
//! keys does not matter. The first value of a repeated key counts (a `web_search` item has two `id`s, and the
//! first is the item's). `null` and a value of an unexpected type count as absent.
//!
//! The head of an over-long line is decoded in the same way; what comes after it is taken from the facts that
//! the framer collected.

mod item;
mod protocol;

use crate::event::{ItemPhase, ThreadEvent};
use crate::framer::LineText;
use crate::json::{Ending, Object, Text, Value, is_json};
use crate::longline::LineRemains;
use crate::protocol::{ProtocolEvent, RolloutLine, RolloutPayload};
use crate::values;
use crate::wire::SENT;
use crate::wire::acp::{AgentMessage, ClientMessage};
use crate::wire::app_server::{SentRequest, ServerMessage};
use crate::wire::claude::ClaudeLine;
use crate::wire::json_rpc::Message;
use item::decode_item;

/// One decoded line. Each dialect has events of its own until the translator converts them into Codex exec
/// events. `Preamble` is printed ahead of a stream of the Codex protocol. `Plain` is a line of an agent that
/// prints no events; of an over-long one it has the beginning, and the full length. `Sent` is a line that we
/// sent. `Unknown` is JSON of an unknown kind, with its `type` if it has one.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    Thread(ThreadEvent<'a>),
    Idle(IdleEvent<'a>),
    Protocol(ProtocolEvent<'a>),
    Preamble,
    Rollout(RolloutLine<'a>),
    AppServerSent(SentRequest),
    AppServer(ServerMessage<'a>),
    Claude(ClaudeLine<'a>),
    AcpSent(ClientMessage<'a>),
    Acp(AgentMessage<'a>),
    Plain { text: Text<'a>, full_bytes: Option<u64> },
    Sent,
    Unknown { kind: Option<Text<'a>> },
    NotJson,
    Blank,
}

impl Event<'_> {
    /// Whether the line is an event of a known dialect.
    pub fn is_understood(&self) -> bool {
        use RolloutPayload::Event as Nested;
        match self {
            Self::Unknown { .. } | Self::NotJson | Self::Blank => false,
            Self::Rollout(line) => !matches!(line.payload, Nested(ProtocolEvent::Unknown { .. })),
            _ => true,
        }
    }
}

/// An event of the idle dialect. The id of a call joins it with its result: it is empty if the agent gave
/// none, and absent in a message to the agent that is echoed as a result. Only the result of a failed call
/// has an error.
#[derive(Clone, Debug)]
pub enum IdleEvent<'a> {
    /// A message of the agent.
    AgentMessage { content: Text<'a> },
    /// A message to the agent, echoed (`agent_message` with the role `user`).
    UserMessage,
    /// The arguments are raw JSON.
    ToolCall { name: Text<'a>, call_id: Text<'a>, arguments: Option<&'a str> },
    /// Also a message to the agent, echoed.
    ToolResult { call_id: Option<Text<'a>>, output: Text<'a>, error: Option<Text<'a>> },
    /// The action is `write`, `edit` or `delete`.
    FileChange { path: Text<'a>, action: Text<'a> },
    /// The turn is over; the agent accepts messages.
    Idle,
    /// The session is over.
    Done,
}

pub fn decode<'a>(line: &'a LineText<'_>) -> Event<'a> {
    match line {
        LineText::Whole(text) => decode_text(text),
        LineText::Truncated { head, tail, facts } => {
            let mut item = None;
            let line = Object::read_line(head, Some(&mut item));
            let is_json = line.ending == Ending::Truncated && head.trim_start().starts_with('{');
            let remains = Some(LineRemains { tail, facts });
            if is_json { decode_line(&line, item.as_ref(), remains) } else { Event::NotJson }
        }
    }
}

pub fn decode_text(text: &str) -> Event<'_> {
    match text.trim_start_matches([' ', '\t', '\r', '\n']).bytes().next() {
        None => return Event::Blank,
        Some(b'{') => {}
        Some(_) if is_json(text) => return Event::Unknown { kind: None },
        Some(_) => return Event::NotJson,
    }
    let mut item = None;
    let line = Object::read_line(text, Some(&mut item));
    if line.ending == Ending::Complete { decode_line(&line, item.as_ref(), None) } else { Event::NotJson }
}

fn decode_line<'a>(
    line: &Object<'a>,
    item: Option<&Object<'a>>,
    remains: Option<LineRemains<'a>>,
) -> Event<'a> {
    let late_kind = || remains.and_then(|remains| remains.facts.outer.kind.as_deref()).map(Text::plain);
    let Some(kind) = line.text("type").or_else(late_kind) else {
        return decode_message(line).unwrap_or_else(|| decode_enveloped(line, None, remains));
    };
    let event = match kind.simple().unwrap_or_default() {
        "thread.started" => {
            ThreadEvent::ThreadStarted { thread_id: line.text("thread_id").unwrap_or_default() }
        }
        "turn.started" => ThreadEvent::TurnStarted,
        "turn.completed" => {
            ThreadEvent::TurnCompleted { usage: line.first(&["usage"], values::usage_object) }
        }
        "turn.failed" => {
            ThreadEvent::TurnFailed { error: error_value(line).map(values::agent_error).unwrap_or_default() }
        }
        "error" => {
            let message = line.text("message").or_else(|| error_value(line).and_then(values::error_message));
            ThreadEvent::Error { message: message.unwrap_or_default() }
        }
        name @ ("item.started" | "item.updated" | "item.completed") => {
            match (ItemPhase::from_name(name), item) {
                (Some(phase), Some(item)) => ThreadEvent::Item { phase, item: decode_item(item, remains) },
                _ => return Event::Unknown { kind: Some(kind) },
            }
        }
        // An envelope is checked last, so that a Codex exec event or an idle event with a `payload` beside it
        // is still decoded as that event.
        name => {
            if let Some(event) = decode_idle_event(name, line, remains) {
                return Event::Idle(event);
            }
            return match ClaudeLine::from_members(name, line) {
                Some(line) => Event::Claude(line),
                None => decode_enveloped(line, Some(kind), remains),
            };
        }
    };
    Event::Thread(event)
}

/// The first `error` that is not null.
fn error_value<'a>(line: &Object<'a>) -> Option<Value<'a>> {
    line.first(&["error"], |error| Some(error).filter(|error| !error.is_null()))
}

fn decode_idle_event<'a>(
    kind: &str,
    line: &Object<'a>,
    remains: Option<LineRemains<'a>>,
) -> Option<IdleEvent<'a>> {
    let any = |key: &str| line.first(&[key], Value::text_or_json);
    let call_id = || {
        let late_id = || remains.and_then(|remains| remains.facts.outer.call_id.as_deref()).map(Text::plain);
        any("call_id").or_else(late_id)
    };
    Some(match kind {
        "agent_message" => {
            let content = any("content").or_else(|| line.text("message")).unwrap_or_default();
            match line.text("role") {
                Some(role) if role == *"user" => IdleEvent::UserMessage,
                _ => IdleEvent::AgentMessage { content },
            }
        }
        "tool_call" => IdleEvent::ToolCall {
            name: line.text("name").unwrap_or_default(),
            call_id: call_id().unwrap_or_default(),
            arguments: line.raw("arguments"),
        },
        "tool_result" => IdleEvent::ToolResult {
            call_id: call_id(),
            output: any("output").or_else(|| any("content")).unwrap_or_default(),
            error: any("error"),
        },
        "file_change" => IdleEvent::FileChange {
            path: line.text("path").unwrap_or_default(),
            action: line.text("action").unwrap_or_default(),
        },
        "idle" => IdleEvent::Idle,
        "done" => IdleEvent::Done,
        _ => return None,
    })
}

fn decode_message<'a>(line: &Object<'a>) -> Option<Event<'a>> {
    let is_acp = |message: &Object<'_>| message.members().any(|(key, _)| key == "jsonrpc");
    if let Some(sent) = line.object(SENT) {
        return Some(match Message::from_members(&sent) {
            Some(message) if is_acp(&sent) => Event::AcpSent(ClientMessage::from_message(message)),
            Some(message) => SentRequest::from_message(&message).map_or(Event::Sent, Event::AppServerSent),
            None => match decode_idle_event(&sent.text("type").unwrap_or_default().resolve(), &sent, None) {
                // A message has no call.
                Some(event @ IdleEvent::ToolResult { call_id: Some(_), .. }) => Event::Idle(event),
                _ => Event::Sent,
            },
        });
    }
    let message = Message::from_members(line)?;
    Some(if is_acp(line) {
        Event::Acp(AgentMessage::from_message(message))
    } else {
        Event::AppServer(ServerMessage::from_message(message))
    })
}

/// Decodes an event inside a wrapper: `{"id":…,"msg":…}` or `{"timestamp":…,"type":…,"payload":…}`. Other
/// programs use these keys too, so a wrapped object without a `type`, or a payload without a timestamp or a
/// known line type, is `Unknown`.
fn decode_enveloped<'a>(
    line: &Object<'a>,
    kind: Option<Text<'a>>,
    remains: Option<LineRemains<'a>>,
) -> Event<'a> {
    let is_wrapped =
        |(key, value): &(&str, Value<'_>)| matches!(*key, "msg" | "payload") && value.is_object();
    let Some((envelope, nested)) = line.members().find(is_wrapped) else {
        // Before 0.44, Codex printed its settings and the prompt ahead of the stream.
        let has = |key: &str| line.text(key).is_some();
        let is_preamble = kind.is_none() && (has("prompt") || (has("model") && has("workdir")));
        return if is_preamble { Event::Preamble } else { Event::Unknown { kind } };
    };
    let nested = nested.object().unwrap_or_default();
    let timestamp = line.text("timestamp");
    match (envelope, kind) {
        ("msg", kind) => match protocol::decode_protocol(&nested, remains) {
            ProtocolEvent::Unknown { kind: unknown } => Event::Unknown { kind: unknown.or(kind) },
            event => Event::Protocol(event),
        },
        (_, Some(kind)) if timestamp.is_some() || protocol::is_line_type(&kind) => {
            Event::Rollout(protocol::decode_rollout(timestamp, &kind, &nested, remains))
        }
        (_, kind) => Event::Unknown { kind },
    }
}
