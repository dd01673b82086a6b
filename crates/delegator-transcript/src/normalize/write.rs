//! Writes Codex exec events as JSON, in the shape that Codex uses today. Fields that an event does not have are
//! omitted, never null.

use crate::event::{
    CollabToolCall, CommandExecution, Item, ItemDetails, ItemPhase, ItemStatus, McpToolCall, ThreadEvent,
    Usage,
};
use crate::framer::LineText;
use crate::json::Text;
use crate::json::write::{Object, array};

use super::long_lines::with_omission_mark;

/// Appends one event, without a line end. `source` is the line it came from; it supplies the missing parts of a text.
pub(super) fn event(event: &ThreadEvent<'_>, source: &LineText<'_>, out: &mut Vec<u8>) {
    let mut line = Object::open(out);
    match event {
        ThreadEvent::ThreadStarted { thread_id } => {
            line.plain("type", "thread.started");
            line.text("thread_id", thread_id);
        }
        ThreadEvent::TurnStarted => line.plain("type", "turn.started"),
        ThreadEvent::TurnCompleted { usage } => {
            line.plain("type", "turn.completed");
            line.with("usage", |out| write_usage(usage.unwrap_or_default(), out));
        }
        ThreadEvent::TurnFailed { error } => {
            line.plain("type", "turn.failed");
            line.with("error", |out| write_message(&error.message, out));
        }
        ThreadEvent::Error { message } => {
            line.plain("type", "error");
            line.text("message", message);
        }
        ThreadEvent::Item { phase, item } => {
            let kind = match phase {
                ItemPhase::Started => "item.started",
                ItemPhase::Updated => "item.updated",
                ItemPhase::Completed => "item.completed",
            };
            line.plain("type", kind);
            line.with("item", |out| write_item(item, source, out));
        }
    }
    line.close();
}

fn write_usage(usage: Usage, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.integer("input_tokens", usage.input_tokens);
    object.integer("cached_input_tokens", usage.cached_input_tokens);
    if let Some(tokens) = usage.cache_write_input_tokens {
        object.integer("cache_write_input_tokens", tokens);
    }
    object.integer("output_tokens", usage.output_tokens);
    if let Some(tokens) = usage.reasoning_output_tokens {
        object.integer("reasoning_output_tokens", tokens);
    }
    object.close();
}

fn write_message(message: &Text<'_>, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.text("message", message);
    object.close();
}

fn write_item(item: &Item<'_>, source: &LineText<'_>, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.text("id", &item.id);
    match &item.details {
        ItemDetails::AgentMessage { text } => {
            object.plain("type", "agent_message");
            write_text("text", text, source, &mut object);
        }
        ItemDetails::Reasoning { text } => {
            object.plain("type", "reasoning");
            write_text("text", text, source, &mut object);
        }
        ItemDetails::CommandExecution(command) => write_command(command, source, &mut object),
        ItemDetails::FileChange { changes } => {
            object.plain("type", "file_change");
            object.with("changes", |out| {
                array(out, changes, |out, change| {
                    let mut object = Object::open(out);
                    object.text("path", &change.path);
                    object.plain("kind", change.kind.name());
                    object.close();
                });
            });
        }
        ItemDetails::McpToolCall(call) => write_mcp_call(call, &mut object),
        ItemDetails::WebSearch { query, action } => {
            object.plain("type", "web_search");
            object.text("query", query);
            if let Some(action) = action {
                object.raw("action", action);
            }
        }
        ItemDetails::TodoList { items } => {
            object.plain("type", "todo_list");
            object.with("items", |out| {
                array(out, items, |out, todo| {
                    let mut object = Object::open(out);
                    object.text("text", &todo.text);
                    object.raw("completed", if todo.completed { "true" } else { "false" });
                    object.close();
                });
            });
        }
        ItemDetails::Error { message } => {
            object.plain("type", "error");
            write_text("message", message, source, &mut object);
        }
        ItemDetails::CollabToolCall(call) => write_collab_call(call, &mut object),
        ItemDetails::Other { kind } => object.text("type", kind),
    }
    if let Some(status) = item.status.filter(|status| *status != ItemStatus::Other) {
        object.plain("status", status.name());
    }
    object.close();
}

/// Writes a text that may be the beginning of a longer one.
fn write_text(key: &str, text: &Text<'_>, source: &LineText<'_>, object: &mut Object<'_>) {
    match with_omission_mark(text, source) {
        Some(marked_text) => object.plain(key, &marked_text),
        None => object.text(key, text),
    }
}

fn write_command(command: &CommandExecution<'_>, source: &LineText<'_>, object: &mut Object<'_>) {
    object.plain("type", "command_execution");
    object.text("command", &command.command);
    write_text("aggregated_output", &command.output, source, object);
    if let Some(code) = command.exit_code {
        object.integer("exit_code", i64::from(code));
    }
}

fn write_mcp_call(call: &McpToolCall<'_>, object: &mut Object<'_>) {
    object.plain("type", "mcp_tool_call");
    object.text("server", &call.server);
    object.text("tool", &call.tool);
    for (key, json) in [("arguments", &call.arguments), ("result", &call.result)] {
        if let Some(json) = json {
            object.raw(key, &json.resolve());
        }
    }
    if let Some(message) = &call.error {
        object.with("error", |out| write_message(message, out));
    }
}

fn write_collab_call(call: &CollabToolCall<'_>, object: &mut Object<'_>) {
    object.plain("type", "collab_tool_call");
    object.text("tool", &call.tool);
    if let Some(sender) = &call.sender_thread_id {
        object.text("sender_thread_id", sender);
    }
    object.raw("receiver_thread_ids", call.receiver_thread_ids.unwrap_or("[]"));
    if let Some(prompt) = &call.prompt {
        object.text("prompt", prompt);
    }
    let states = call.agents_states.as_ref().map_or("{}".into(), Text::resolve);
    object.raw("agents_states", &states);
}
