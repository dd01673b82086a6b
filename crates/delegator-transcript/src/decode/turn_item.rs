//! Decodes items of the Codex protocol (`item_started`, `item_completed`) into items of Codex exec events.
//!
//! Newer session files use them in place of begin and end events. Names are in camel case, changes are a map,
//! and some results are spelled differently; the content is the same.

use super::item::{decode_change_map, decode_collab_call, decode_exit_code, decode_mcp_call};
use crate::event::{CollabToolCall, CommandExecution, Item, ItemDetails, ItemStatus, McpToolCall};
use crate::json::{Ending, Object, Text, Value};
use crate::shell;
use crate::values::{agents_states, codex_exec_result, read_todos};

#[derive(Debug)]
pub(super) enum TurnItem<'a> {
    Item(Item<'a>),
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
        status: status.map(|status| ItemStatus::read(status.simple().unwrap_or_default())),
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
        "TodoList" => ItemDetails::TodoList { items: read_todos(fields, "items", "text") },
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

/// `{"id":"pending_init"}` and `{"id":{"completed":"text"}}` as `{"id":{"status":…,"message":…}}`.
fn decode_agents_states(states: Value<'_>) -> Option<Text<'_>> {
    let states = states.object().filter(|states| states.ending == Ending::Complete)?;
    Some(agents_states(&states, |state| match state.object().map(|state| state.members().last()) {
        Some(Some((status, message))) => (Text::json(status), message.text()),
        Some(None) => (Text::default(), None),
        None => (state.text().unwrap_or_default(), None),
    }))
}
