//! Decodes the items of Codex exec events.

use super::{Remains, error};
use crate::event::{
    ChangeKind, CollabToolCall, CommandExecution, FileChange, Item, ItemDetails, ItemStatus, McpToolCall,
    Todo,
};
use crate::json::unique::is_item_id;
use crate::json::{Object, Text, Value};
use crate::longline::ObjectFacts;

/// Decodes an item. Of an over-long line, fields behind the head are taken from the facts.
pub(super) fn decode_item<'a>(fields: &Object<'a>, remains: Option<Remains<'a>>) -> Item<'a> {
    let facts = remains.map(|remains| &remains.facts.inner);
    let text = |key: &str, fact: fn(&ObjectFacts) -> Option<&str>| {
        fields.text(key).or_else(|| facts.and_then(fact).map(Text::plain))
    };
    let kind = text("type", |facts| facts.kind.as_deref()).unwrap_or_default();
    let status = text("status", |facts| facts.status.as_deref());
    // Codex writes a second id, of the model provider, into web-search items.
    let item_id = fields.first(&["id"], |id| id.text().filter(|id| id.simple().is_some_and(is_item_id)));
    let longest = remains.and_then(|remains| remains.facts.longest_string);
    Item {
        id: item_id.or_else(|| text("id", |facts| facts.id.as_deref())).unwrap_or_default(),
        status: status.map(|status| ItemStatus::from_name(status.simple().unwrap_or_default())),
        details: decode_details(kind, fields, remains),
        full_bytes: longest.map(|(from, to)| to - from),
    }
}

fn decode_details<'a>(kind: Text<'a>, fields: &Object<'a>, remains: Option<Remains<'a>>) -> ItemDetails<'a> {
    // No item type has two of these.
    let text = || fields.first(&["text", "message", "command", "query"], Value::text).unwrap_or_default();
    match kind.simple().unwrap_or_default() {
        "agent_message" => ItemDetails::AgentMessage { text: text() },
        "reasoning" => ItemDetails::Reasoning { text: text() },
        "command_execution" => ItemDetails::CommandExecution(decode_command(text(), fields, remains)),
        "file_change" => ItemDetails::FileChange { changes: fields.list(&["changes"], decode_change) },
        "mcp_tool_call" => ItemDetails::McpToolCall(McpToolCall {
            result: fields.raw("result").map(Text::plain),
            error: fields.first(&["error"], error::message),
            ..decode_mcp_call(fields)
        }),
        "web_search" => ItemDetails::WebSearch { query: text(), action: fields.raw("action") },
        "todo_list" => ItemDetails::TodoList { items: decode_todos(fields, "items", "text") },
        "error" => ItemDetails::Error { message: text() },
        "collab_tool_call" => {
            let agents_states = fields.raw("agents_states").map(Text::plain);
            ItemDetails::CollabToolCall(CollabToolCall { agents_states, ..decode_collab_call(fields) })
        }
        _ => ItemDetails::Other { kind },
    }
}

fn decode_command<'a>(
    command: Text<'a>,
    fields: &Object<'a>,
    remains: Option<Remains<'a>>,
) -> CommandExecution<'a> {
    let output = fields.text("aggregated_output").unwrap_or_default();
    let (output_bytes, output_tail) = match remains {
        Some(remains) => remains.end_of_longest_string(&output),
        None => (output.len() as u64, None),
    };
    let late_exit_code = || i32::try_from(remains?.facts.inner.exit_code?).ok();
    let exit_code = decode_exit_code(fields).or_else(late_exit_code);
    CommandExecution { command, output, output_tail, output_bytes, exit_code }
}

pub(super) fn decode_exit_code(fields: &Object<'_>) -> Option<i32> {
    fields.first(&["exit_code"], |code| i32::try_from(code.integer()?).ok())
}

/// Everything but result and error, which the dialects write differently.
pub(super) fn decode_mcp_call<'a>(fields: &Object<'a>) -> McpToolCall<'a> {
    McpToolCall {
        server: fields.text("server").unwrap_or_default(),
        tool: fields.text("tool").unwrap_or_default(),
        arguments: fields.raw("arguments").map(Text::plain),
        ..McpToolCall::default()
    }
}

/// Everything but `agents_states`, which the dialects write differently.
pub(super) fn decode_collab_call<'a>(fields: &Object<'a>) -> CollabToolCall<'a> {
    CollabToolCall {
        tool: fields.text("tool").unwrap_or_default(),
        sender_thread_id: fields.text("sender_thread_id"),
        receiver_thread_ids: fields.raw("receiver_thread_ids"),
        prompt: fields.text("prompt"),
        agents_states: None,
    }
}

impl<'a> Remains<'a> {
    /// Returns the full byte length of the string at which the head was truncated, and its end, if `begun` is that
    /// string.
    fn end_of_longest_string(&self, begun: &Text<'a>) -> (u64, Option<Text<'a>>) {
        let Some((from, to)) = self.facts.longest_string.filter(|_| !begun.is_empty()) else {
            return (begun.len() as u64, None);
        };
        let behind = self.facts.length.saturating_sub(to);
        let tail = usize::try_from(behind).ok().and_then(|behind| {
            let end = self.tail.len().checked_sub(behind)?;
            Some(Text::cut_json_tail(self.tail.get(..end)?, 0))
        });
        (to - from, tail)
    }
}

/// `{"path":…,"kind":…}`
fn decode_change(change: Value<'_>) -> Option<FileChange<'_>> {
    let change = change.object()?;
    let kind = change.text("kind");
    let kind = ChangeKind::from_name(kind.as_ref().and_then(Text::simple).unwrap_or_default());
    Some(FileChange { path: change.text("path")?, kind })
}

/// `[{"text":…,"completed":…}]`; in the Codex protocol `[{"step":…,"status":…}]`.
pub(crate) fn decode_todos<'a>(fields: &Object<'a>, key: &str, text_key: &str) -> Vec<Todo<'a>> {
    fields.list(&[key], |todo| {
        let todo = todo.object()?;
        let completed = todo.members().find_map(|(key, value)| match key {
            "completed" => value.boolean(),
            "status" => value.text().map(|status| status == *"completed"),
            _ => None,
        });
        Some(Todo { text: todo.text(text_key)?, completed: completed.unwrap_or(false) })
    })
}
