//! Decodes one line into an [`Event`]. Decoding never fails: an unusable line becomes `NotJson` or `Unknown`.
//!
//! [`Object::read_line`] collects the top-level fields; the dialect is decided afterwards, so the order of
//! keys does not matter. The first value of a repeated key counts (a `web_search` item has two `id`s, and the
//! first is the item's). `null` and a value of an unexpected type count as absent.
//!
//! The head of an over-long line is decoded in the same way; what comes after it is taken from the facts that
//! the framer collected.

mod event;
mod item;
mod protocol;
mod rollout;
mod turn_item;

use crate::event::{ItemPhase, ThreadEvent};
use crate::framer::LineText;
use crate::json::{Ending, Object, Text, Value, is_json};
use crate::longline::{LineRemains, LongLineFacts};
use crate::protocol::ProtocolEvent;
use crate::values;
use crate::wire::SENT;
use crate::wire::acp::{AgentMessage, ClientMessage};
use crate::wire::app_server::{SentRequest, ServerMessage};
use crate::wire::claude::ClaudeLine;
use crate::wire::json_rpc::Message;
pub use event::{AcpEvent, AppServerEvent, Event, IdleEvent};
use item::decode_item;

/// Decodes a line from the framer.
pub fn decode<'a>(line: &'a LineText<'_>) -> Event<'a> {
    match line {
        LineText::Whole(text) => decode_text(text),
        LineText::Truncated { head, tail, facts } => decode_truncated(head, tail, facts),
    }
}

/// Decodes a line that is already text.
pub fn decode_text(text: &str) -> Event<'_> {
    match text.trim_start_matches([' ', '\t', '\r', '\n']).bytes().next() {
        None => return Event::Blank,
        Some(b'{') => {}
        Some(_) if is_json(text) => return Event::Unknown { kind: None },
        Some(_) => return Event::NotJson,
    }
    let mut item = None;
    let line = Object::read_line(text, &mut item);
    match line.ending {
        Ending::Complete => decode_line(&line, item.as_ref(), None),
        Ending::Truncated | Ending::Invalid => Event::NotJson,
    }
}

/// Decodes a line of which only head and tail are available.
fn decode_truncated<'a>(head: &'a str, tail: &'a str, facts: &'a LongLineFacts) -> Event<'a> {
    let mut item = None;
    let line = Object::read_line(head, &mut item);
    match line.ending {
        Ending::Truncated if head.trim_start().starts_with('{') => {
            decode_line(&line, item.as_ref(), Some(LineRemains { tail, facts }))
        }
        Ending::Truncated | Ending::Complete | Ending::Invalid => Event::NotJson,
    }
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
            let Some(item) = item else { return Event::Unknown { kind: Some(kind) } };
            let phase = match name {
                "item.started" => ItemPhase::Started,
                "item.updated" => ItemPhase::Updated,
                _ => ItemPhase::Completed,
            };
            ThreadEvent::Item { phase, item: decode_item(item, remains) }
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

/// Decodes a message of an agent that converses, or one that we sent to it.
fn decode_message<'a>(line: &Object<'a>) -> Option<Event<'a>> {
    let is_acp = |message: &Object<'_>| message.members().any(|(key, _)| key == "jsonrpc");
    if let Some(sent) = line.object(SENT) {
        return Some(match Message::from_members(&sent) {
            Some(message) if is_acp(&sent) => {
                Event::Acp(AcpEvent::Sent(ClientMessage::from_message(message)))
            }
            Some(message) => SentRequest::from_message(&message)
                .map_or(Event::Sent, |request| Event::AppServer(AppServerEvent::Sent(request))),
            None => match decode_idle_event(&sent.text("type").unwrap_or_default().resolve(), &sent, None) {
                // A message has no call.
                Some(event @ IdleEvent::ToolResult { call_id: Some(_), .. }) => Event::Idle(event),
                _ => Event::Sent,
            },
        });
    }
    let message = Message::from_members(line)?;
    Some(if is_acp(line) {
        Event::Acp(AcpEvent::Received(AgentMessage::from_message(message)))
    } else {
        Event::AppServer(AppServerEvent::Received(ServerMessage::from_message(message)))
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
        return if kind.is_some() { Event::Unknown { kind } } else { decode_preamble(line) };
    };
    let nested = nested.object().unwrap_or_default();
    let timestamp = line.text("timestamp");
    match (envelope, kind) {
        ("msg", kind) => match protocol::decode_protocol(&nested, remains) {
            ProtocolEvent::Unknown { kind: None } => Event::Unknown { kind },
            event => Event::Protocol(event),
        },
        (_, Some(kind)) if timestamp.is_some() || rollout::is_line_type(&kind) => {
            Event::Rollout(rollout::decode_rollout(timestamp, &kind, &nested, remains))
        }
        (_, kind) => Event::Unknown { kind },
    }
}

/// A line without a `type`: before 0.44, Codex printed its settings and the prompt ahead of the stream.
fn decode_preamble<'a>(line: &Object<'a>) -> Event<'a> {
    let has = |key: &str| line.text(key).is_some();
    if has("prompt") || (has("model") && has("workdir")) {
        Event::Preamble
    } else {
        Event::Unknown { kind: None }
    }
}
