//! Decodes items of the Codex protocol (`item_started`, `item_completed`) into items of Codex exec events.
//!
//! Newer session files use them in place of begin and end events. Names are in camel case, changes are a map, and some
//! results are spelled differently; the content is the same.

use super::item::{decode_collab_call, decode_exit_code, decode_mcp_call, decode_todos};
use super::protocol::decode_change_map;
use crate::event::{CollabToolCall, CommandExecution, Item, ItemDetails, ItemStatus, McpToolCall};
use crate::json::{Ending, Object, Text, Value, write};
use crate::shell;

/// The result of decoding an item of the protocol.
#[derive(Debug)]
pub(super) enum TurnItem<'a> {
    Item(Item<'a>),
    /// A message of the user.
    UserText(Text<'a>),
    /// An item that has no counterpart in Codex exec events: images, compaction, …
    Other,
}

pub(super) fn decode_turn_item<'a>(fields: &Object<'a>) -> TurnItem<'a> {
    let kind = fields.text("type");
    if kind.as_ref().is_some_and(|kind| *kind == *"UserMessage") {
        return TurnItem::UserText(joined_texts(fields));
    }
    let details = kind.as_ref().and_then(Text::simple).and_then(|kind| decode_details(kind, fields));
    let Some(details) = details else { return TurnItem::Other };
    let status = fields.text("status");
    TurnItem::Item(Item {
        id: fields.text("id").unwrap_or_default(),
        status: status.map(|status| ItemStatus::from_name(status.simple().unwrap_or_default())),
        details,
        full_bytes: None,
    })
}

fn decode_details<'a>(kind: &str, fields: &Object<'a>) -> Option<ItemDetails<'a>> {
    Some(match kind {
        "AgentMessage" => ItemDetails::AgentMessage { text: joined_texts(fields) },
        "Reasoning" => {
            ItemDetails::Reasoning { text: Some(joined_texts(fields)).filter(|text| !text.is_empty())? }
        }
        "CommandExecution" => {
            let words = fields.list(&["command"], |word| Some(word.text()?.resolve().into_owned()));
            let output = fields.text("aggregated_output").unwrap_or_default();
            let command = Text::owned(shell::join(&words));
            ItemDetails::CommandExecution(CommandExecution::ended(command, output, decode_exit_code(fields)))
        }
        "FileChange" => ItemDetails::FileChange { changes: decode_change_map(fields) },
        "McpToolCall" => ItemDetails::McpToolCall(McpToolCall {
            result: fields.raw("result").map(|raw| Text::owned(codex_exec_result(raw))),
            error: fields.first(&["error"], |error| error.object()?.text("message")),
            ..decode_mcp_call(fields)
        }),
        "WebSearch" => ItemDetails::WebSearch {
            query: fields.text("query").unwrap_or_default(),
            action: fields.raw("action"),
        },
        "TodoList" => ItemDetails::TodoList { items: decode_todos(fields, "items", "text") },
        "CollabAgentToolCall" => {
            let agents_states = fields.first(&["agents_states"], decode_agents_states);
            ItemDetails::CollabToolCall(CollabToolCall { agents_states, ..decode_collab_call(fields) })
        }
        _ => return None,
    })
}

/// The texts of `content` or of `summary_text`.
fn joined_texts<'a>(fields: &Object<'a>) -> Text<'a> {
    Text::joined(fields.list(&["content", "summary_text"], decode_text_part), "\n")
}

/// A string, or an object with a `text`.
pub(super) fn decode_text_part(part: Value<'_>) -> Option<Text<'_>> {
    part.text().or_else(|| part.object()?.text("text"))
}

/// Spells an MCP result as Codex exec events do: `structured_content` always present, no `isError` (the status has it).
/// A value without any field of an MCP result is returned unchanged.
pub(crate) fn codex_exec_result(raw: &str) -> String {
    let result = Object::read(raw);
    let content = result.raw("content");
    let structured = result.first(&["structuredContent", "structured_content"], Value::raw);
    let is_mcp = |key: &str| {
        matches!(
            key,
            "content" | "_meta" | "structuredContent" | "structured_content" | "isError" | "is_error"
        )
    };
    let is_foreign =
        content.is_none() && structured.is_none() && !result.members().all(|(key, _)| is_mcp(key));
    if !raw.starts_with('{') || result.ending != Ending::Complete || is_foreign {
        return raw.to_owned();
    }
    write::object_text(|object| {
        object.raw("content", content.unwrap_or("[]"));
        if let Some(meta) = result.raw("_meta") {
            object.raw("_meta", meta);
        }
        object.raw("structured_content", structured.unwrap_or("null"));
    })
}

/// `{"id":"pending_init"}` and `{"id":{"completed":"text"}}` as `{"id":{"status":…,"message":…}}`.
fn decode_agents_states(states: Value<'_>) -> Option<Text<'_>> {
    let states = states.object().filter(|states| states.ending == Ending::Complete)?;
    Some(agents_states(&states, |state| match state.object().map(|state| state.members().last()) {
        Some(Some((status, message))) => (Text::json(status), message.text()),
        Some(None) => (Text::default(), None),
        None => (state.text().unwrap_or_default(), None),
    }))
}

/// The states of sub-agents as Codex exec events have them. `read` returns the status and the message of one.
pub(crate) fn agents_states<'a>(
    states: &Object<'a>,
    read: impl Fn(Value<'a>) -> (Text<'a>, Option<Text<'a>>),
) -> Text<'static> {
    Text::owned(write::object_text(|object| {
        for (thread, state) in states.members() {
            let (status, message) = read(state);
            object.object(&Text::json(thread).resolve(), |state| {
                state.text("status", &status);
                match message {
                    Some(message) => state.text("message", &message),
                    None => state.raw("message", "null"),
                }
            });
        }
    }))
}
