//! Decodes one line into an [`Event`]. Decoding never fails: an unusable line becomes `NotJson` or `Unknown`.
//!
//! One pass collects the fields that any dialect may have at the top level ([`Top`]); the dialect is decided
//! afterwards, so the order of keys does not matter. Of a repeated key the first value counts (a `web_search` item has
//! two `id`s, and the first is the item's). `null` and a value of an unexpected type count as absent.
//!
//! Of an over-long line the head is decoded in the same way; what comes after it is taken from the facts that the
//! framer collected.

mod error;
mod item;
mod protocol;
mod rollout;
mod turn_item;
mod usage;

use crate::event::{Event, IdleEvent, ItemPhase, ThreadEvent, Usage};
use crate::framer::LineText;
use crate::json::{Cursor, Scan, ScanError, Text};
use crate::longline::LongLineFacts;
use crate::protocol::{Preamble, ProtocolEvent};
use error::TopError;
use item::ItemFields;
use usage::read_usage;

/// Decodes a line from the framer.
pub fn decode<'a>(line: &'a LineText<'_>) -> Event<'a> {
    match line {
        LineText::Whole(text) => decode_text(text),
        LineText::Truncated { head, tail, facts } => decode_truncated(head, tail, facts),
    }
}

/// Decodes a line that is already text.
pub fn decode_text(text: &str) -> Event<'_> {
    let mut cursor = Cursor::new(text);
    match cursor.peek() {
        None => return Event::Blank,
        Some(b'{') => {}
        Some(_) if crate::json::is_json(text) => return Event::Unknown { kind: None },
        Some(_) => return Event::NotJson,
    }
    let mut top = Top::default();
    match top.read(&mut cursor).and_then(|()| cursor.end()) {
        Ok(()) => top.into_event(None),
        Err(_) => Event::NotJson,
    }
}

/// Decodes a line of which only head and tail are available.
fn decode_truncated<'a>(head: &'a str, tail: &'a str, facts: &'a LongLineFacts) -> Event<'a> {
    let mut cursor = Cursor::new(head);
    if cursor.peek() != Some(b'{') {
        return Event::NotJson;
    }
    let mut top = Top::default();
    match top.read(&mut cursor) {
        Err(ScanError::Truncated) => top.into_event(Some(Remains { tail, facts })),
        Ok(()) | Err(ScanError::Syntax) => Event::NotJson,
    }
}

/// What is known of an over-long line besides its head.
#[derive(Clone, Copy, Debug)]
struct Remains<'a> {
    tail: &'a str,
    facts: &'a LongLineFacts,
}

/// An unparsed object inside the line; it is decoded once its meaning is known.
#[derive(Clone, Copy, Debug)]
struct Nested<'a>(&'a str);

/// Stores the first value of a repeated key.
#[inline]
fn first<T>(slot: &mut Option<T>, value: Option<T>) {
    if slot.is_none() {
        *slot = value;
    }
}

/// Reads a string into `slot`; of a truncated string, the part that is available.
#[inline]
fn text_into<'a>(cursor: &mut Cursor<'a>, slot: &mut Option<Text<'a>>) -> Scan<()> {
    match cursor.text() {
        Ok(text) => first(slot, text),
        Err(ScanError::Truncated) => {
            first(slot, cursor.take_partial());
            return Err(ScanError::Truncated);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Reads a string as text and any other value except `null` as its JSON. Needed for the idle dialect, where these
/// fields may have any type.
fn loose_into<'a>(cursor: &mut Cursor<'a>, slot: &mut Option<Text<'a>>) -> Scan<()> {
    if cursor.peek() == Some(b'"') {
        return text_into(cursor, slot);
    }
    let mut nested = None;
    let read = nested_into(cursor, &mut nested);
    first(slot, nested.filter(|value| value.0 != "null").map(|Nested(raw)| Text::plain(raw)));
    read
}

/// Stores an object or array for later; of a truncated one, the part that is available.
fn nested_into<'a>(cursor: &mut Cursor<'a>, slot: &mut Option<Nested<'a>>) -> Scan<()> {
    let rest = cursor.rest();
    match cursor.raw() {
        Ok(raw) => first(slot, Some(Nested(raw))),
        Err(ScanError::Truncated) => {
            first(slot, Some(Nested(rest)));
            return Err(ScanError::Truncated);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The top-level fields of all dialects.
#[derive(Debug, Default)]
struct Top<'a> {
    kind: Option<Text<'a>>,
    item: Option<ItemFields<'a>>,
    thread_id: Option<Text<'a>>,
    usage: Option<Usage>,
    error: Option<TopError<'a>>,
    message: Option<Text<'a>>,
    nested: Option<Nested<'a>>,
    nested_in: Option<Envelope>,
    /// Fields that only the other dialects have; boxed so that Codex exec events do not pay for them.
    other: Option<Box<OtherTop<'a>>>,
}

#[derive(Debug, Default)]
struct OtherTop<'a> {
    timestamp: Option<Text<'a>>,
    role: Option<Text<'a>>,
    content: Option<Text<'a>>,
    name: Option<Text<'a>>,
    call_id: Option<Text<'a>>,
    arguments: Option<&'a str>,
    output: Option<Text<'a>>,
    path: Option<Text<'a>>,
    action: Option<Text<'a>>,
    model: Option<Text<'a>>,
    workdir: Option<Text<'a>>,
    prompt: Option<Text<'a>>,
}

/// The wrapper of a nested event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Envelope {
    /// `{"id":…,"msg":…}`
    Message,
    /// `{"timestamp":…,"type":…,"payload":…}`
    Payload,
}

impl<'a> Top<'a> {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Scan<()> {
        cursor.object(|cursor, key| {
            match key.simple().unwrap_or_default() {
                "type" => text_into(cursor, &mut self.kind)?,
                "item" if cursor.peek() == Some(b'{') && self.item.is_none() => {
                    self.item.insert(ItemFields::default()).read(cursor)?;
                }
                "thread_id" => text_into(cursor, &mut self.thread_id)?,
                "usage" => first(&mut self.usage, read_usage(cursor)?),
                "error" => TopError::read(cursor, &mut self.error)?,
                "message" => text_into(cursor, &mut self.message)?,
                "msg" if cursor.peek() == Some(b'{') => {
                    self.nested_in = self.nested_in.or(Some(Envelope::Message));
                    nested_into(cursor, &mut self.nested)?;
                }
                "payload" if cursor.peek() == Some(b'{') => {
                    self.nested_in = self.nested_in.or(Some(Envelope::Payload));
                    nested_into(cursor, &mut self.nested)?;
                }
                key => return self.read_other(cursor, key),
            }
            Ok(())
        })
    }

    fn read_other(&mut self, cursor: &mut Cursor<'a>, key: &str) -> Scan<()> {
        let is_ours = matches!(
            key,
            "timestamp"
                | "role"
                | "content"
                | "name"
                | "call_id"
                | "arguments"
                | "output"
                | "path"
                | "action"
                | "model"
                | "workdir"
                | "prompt"
        );
        if !is_ours {
            return cursor.skip();
        }
        let other = self.other.get_or_insert_default();
        let slot = match key {
            "arguments" => {
                first(&mut other.arguments, cursor.raw_unless_null()?);
                return Ok(());
            }
            "content" => return loose_into(cursor, &mut other.content),
            "call_id" => return loose_into(cursor, &mut other.call_id),
            "output" => return loose_into(cursor, &mut other.output),
            "timestamp" => &mut other.timestamp,
            "role" => &mut other.role,
            "name" => &mut other.name,
            "path" => &mut other.path,
            "action" => &mut other.action,
            "model" => &mut other.model,
            "workdir" => &mut other.workdir,
            _ => &mut other.prompt,
        };
        text_into(cursor, slot)
    }

    fn into_event(mut self, remains: Option<Remains<'a>>) -> Event<'a> {
        if let (None, Some(Remains { facts, .. })) = (&self.kind, remains) {
            self.kind = facts.outer.kind.as_deref().map(Text::plain);
        }
        let Some(kind) = self.kind.take() else { return self.into_enveloped(None, remains) };
        let event = match kind.simple().unwrap_or_default() {
            "thread.started" => ThreadEvent::ThreadStarted { thread_id: self.thread_id.unwrap_or_default() },
            "turn.started" => ThreadEvent::TurnStarted,
            "turn.completed" => ThreadEvent::TurnCompleted { usage: self.usage },
            "turn.failed" => ThreadEvent::TurnFailed {
                message: self.error.and_then(TopError::message).unwrap_or_default(),
            },
            "error" => {
                let message = self.message.or_else(|| self.error.and_then(TopError::message));
                ThreadEvent::Error { message: message.unwrap_or_default() }
            }
            "item.started" => return self.into_item(kind, ItemPhase::Started, remains),
            "item.updated" => return self.into_item(kind, ItemPhase::Updated, remains),
            "item.completed" => return self.into_item(kind, ItemPhase::Completed, remains),
            "agent_message" | "tool_call" | "tool_result" | "file_change" | "idle" | "done" => {
                return self.into_idle_event(kind, remains);
            }
            // Checked last, so that a Codex exec event or an idle event with a `payload` beside it is still decoded as
            // that event.
            _ => return self.into_enveloped(Some(kind), remains),
        };
        Event::Thread(event)
    }

    /// Decodes an event inside a `msg` or `payload` wrapper. Other programs use these keys too, so a wrapped object
    /// without a `type`, or a payload without a timestamp or a known line type, is `Unknown`.
    fn into_enveloped(self, kind: Option<Text<'a>>, remains: Option<Remains<'a>>) -> Event<'a> {
        let Some((envelope, nested)) = self.nested_in.zip(self.nested) else {
            return if kind.is_some() { Event::Unknown { kind } } else { self.into_preamble() };
        };
        let timestamp = self.other.and_then(|other| other.timestamp);
        match (envelope, kind) {
            (Envelope::Message, kind) => match protocol::decode_protocol(nested, remains) {
                ProtocolEvent::Unknown { kind: None } => Event::Unknown { kind },
                event => Event::Protocol(event),
            },
            (Envelope::Payload, Some(kind)) if timestamp.is_some() || rollout::is_line_type(&kind) => {
                Event::Rollout(rollout::decode_rollout(timestamp, kind, nested, remains))
            }
            (Envelope::Payload, kind) => Event::Unknown { kind },
        }
    }

    fn into_item(self, kind: Text<'a>, phase: ItemPhase, remains: Option<Remains<'a>>) -> Event<'a> {
        match self.item {
            Some(fields) => Event::Thread(ThreadEvent::Item { phase, item: fields.into_item(remains) }),
            None => Event::Unknown { kind: Some(kind) },
        }
    }

    fn into_idle_event(self, kind: Text<'a>, remains: Option<Remains<'a>>) -> Event<'a> {
        let other = self.other.map(|fields| *fields).unwrap_or_default();
        let late_id = remains.and_then(|r| r.facts.outer.call_id.as_deref()).map(Text::plain);
        let call_id = other.call_id.or(late_id);
        Event::Idle(match kind.simple().unwrap_or_default() {
            "agent_message" => {
                let content = other.content.or(self.message).unwrap_or_default();
                match other.role {
                    Some(role) if role == *"user" => IdleEvent::UserMessage { content },
                    _ => IdleEvent::AgentMessage { content },
                }
            }
            "tool_call" => IdleEvent::ToolCall {
                name: other.name.unwrap_or_default(),
                call_id: call_id.unwrap_or_default(),
                arguments: other.arguments,
            },
            "tool_result" => IdleEvent::ToolResult {
                call_id,
                output: other.output.or(other.content).unwrap_or_default(),
                error: self.error.map(TopError::whole),
            },
            "file_change" => IdleEvent::FileChange {
                path: other.path.unwrap_or_default(),
                action: other.action.unwrap_or_default(),
            },
            "idle" => IdleEvent::Idle,
            "done" => IdleEvent::Done,
            _ => return Event::Unknown { kind: Some(kind) },
        })
    }

    /// A line without a `type`: before 0.44, Codex printed its settings and the prompt ahead of the stream.
    fn into_preamble(self) -> Event<'a> {
        let Some(other) = self.other else { return Event::Unknown { kind: None } };
        let is_settings = other.model.is_some() && other.workdir.is_some();
        if !is_settings && other.prompt.is_none() {
            return Event::Unknown { kind: None };
        }
        Event::Preamble(Preamble { model: other.model, workdir: other.workdir, prompt: other.prompt })
    }
}

/// Reads the `message` of an object.
fn read_message<'a>(cursor: &mut Cursor<'a>, slot: &mut Option<Text<'a>>) -> Scan<()> {
    cursor.object(|cursor, key| match key.simple() {
        Some("message") => text_into(cursor, slot),
        _ => cursor.skip(),
    })
}
