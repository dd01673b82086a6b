//! Decodes the items of Codex exec events.

use crate::event::{CommandExecution, Item, ItemDetails, ItemStatus, McpToolCall};
use crate::json::unique::is_item_id;
use crate::json::{Object, Text, Value};
use crate::longline::{LineRemains, ScannedObject};
use crate::values::{collab_call, error_message, file_changes, mcp_call, read_todos};

pub(super) fn decode_item<'a>(fields: &Object<'a>, remains: Option<LineRemains<'a>>) -> Item<'a> {
    let facts = remains.map(|remains| &remains.facts.inner);
    let text = |key: &str, fact: fn(&ScannedObject) -> Option<&str>| {
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
        "file_change" => ItemDetails::FileChange { changes: file_changes(fields) },
        "mcp_tool_call" => ItemDetails::McpToolCall(McpToolCall {
            result: fields.raw("result").map(Text::plain),
            error: fields.first(&["error"], error_message),
            ..mcp_call(fields)
        }),
        "web_search" => ItemDetails::WebSearch { query: text(), action: fields.raw("action") },
        "todo_list" => ItemDetails::TodoList { items: read_todos(fields, "items", "text") },
        "error" => ItemDetails::Error { message: text() },
        "collab_tool_call" => {
            ItemDetails::CollabToolCall(collab_call(fields, fields.raw("agents_states").map(Text::plain)))
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
    let exit_code = fields.first(&["exit_code"], Value::small_integer).or_else(late_exit_code);
    CommandExecution { command, output, output_tail, output_bytes, exit_code, duration_ms: None }
}
