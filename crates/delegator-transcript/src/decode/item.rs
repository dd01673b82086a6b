//! Decodes the items of Codex exec events.

use crate::event::{
    ChangeKind, CollabToolCall, CommandExecution, FileChange, Item, ItemDetails, ItemStatus, McpToolCall,
};
use crate::json::unique::is_item_id;
use crate::json::{Ending, Object, Text, Value};
use crate::longline::{LineRemains, ObjectFacts};
use crate::values::{self, read_todos};

pub(super) fn decode_item<'a>(fields: &Object<'a>, remains: Option<LineRemains<'a>>) -> Item<'a> {
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
        status: status.map(|status| ItemStatus::read(status.simple().unwrap_or_default())),
        details: decode_details(kind, fields, remains),
        full_bytes: longest.map(|(from, to)| to - from),
    }
}

fn decode_details<'a>(
    kind: Text<'a>,
    fields: &Object<'a>,
    remains: Option<LineRemains<'a>>,
) -> ItemDetails<'a> {
    // No item type has two of these.
    let text = || fields.first(&["text", "message", "command", "query"], Value::text).unwrap_or_default();
    match kind.simple().unwrap_or_default() {
        "agent_message" => ItemDetails::AgentMessage { text: text() },
        "reasoning" => ItemDetails::Reasoning { text: text() },
        "command_execution" => ItemDetails::CommandExecution(decode_command(text(), fields, remains)),
        "file_change" => ItemDetails::FileChange { changes: fields.list(&["changes"], decode_change) },
        "mcp_tool_call" => ItemDetails::McpToolCall(McpToolCall {
            result: fields.raw("result").map(Text::plain),
            error: fields.first(&["error"], values::error_message),
            ..decode_mcp_call(fields)
        }),
        "web_search" => ItemDetails::WebSearch { query: text(), action: fields.raw("action") },
        "todo_list" => ItemDetails::TodoList { items: read_todos(fields, "items", "text") },
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
    remains: Option<LineRemains<'a>>,
) -> CommandExecution<'a> {
    let output = fields.text("aggregated_output").unwrap_or_default();
    // An over-long line was truncated inside its longest string, which is the output if there is any.
    let cut = remains.filter(|_| !output.is_empty());
    let longest = cut.and_then(|remains| remains.facts.longest_string);
    let output_bytes = longest.map_or(output.len() as u64, |(from, to)| to - from);
    let output_tail = cut.and_then(|remains| remains.end_of_longest_string());
    let late_exit_code = || i32::try_from(remains?.facts.inner.exit_code?).ok();
    let exit_code = decode_exit_code(fields).or_else(late_exit_code);
    CommandExecution { command, output, output_tail, output_bytes, exit_code }
}

pub(super) fn decode_exit_code(fields: &Object<'_>) -> Option<i32> {
    fields.first(&["exit_code"], Value::small_integer)
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

/// `{"path":…,"kind":…}`
fn decode_change(change: Value<'_>) -> Option<FileChange<'_>> {
    let change = change.object()?;
    let kind = change.text("kind");
    let kind = ChangeKind::read(kind.as_ref().and_then(Text::simple).unwrap_or_default());
    Some(FileChange { path: change.text("path")?, kind })
}

/// `changes`: `{"path":{"add":…}}`; in newer versions `{"path":{"type":"add",…}}`.
pub(super) fn decode_change_map<'a>(fields: &Object<'a>) -> Vec<FileChange<'a>> {
    let decode_kind = |change: Value<'a>| {
        let change = change.object().filter(|change| change.ending == Ending::Complete)?;
        let tagged = change.text("type");
        let tagged = tagged.map(|name| ChangeKind::read(name.simple().unwrap_or_default()));
        let named = || {
            let kinds = ["add", "delete", "update", "Add", "Delete", "Update"];
            change.members().find(|(key, _)| kinds.contains(key)).map(|(key, _)| ChangeKind::read(key))
        };
        Some(tagged.or_else(named).unwrap_or(ChangeKind::Update))
    };
    let changes = fields.first(&["changes"], |changes| {
        let changes = changes.object()?;
        let change = |(path, change)| Some(FileChange { path: Text::json(path), kind: decode_kind(change)? });
        Some(changes.members().filter_map(change).collect::<Vec<_>>()).filter(|list| !list.is_empty())
    });
    let mut changes = changes.unwrap_or_default();
    // A map has no order; Codex shows changes sorted by path.
    changes.sort_by(|a, b| a.path.resolve().cmp(&b.path.resolve()));
    changes
}
