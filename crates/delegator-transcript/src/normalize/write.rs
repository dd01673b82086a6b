//! Writes Codex exec events as JSON, in the shape that Codex uses today. Fields that an event does not have
//! are omitted, never null.

use crate::event::{CollabToolCall, Item, ItemDetails, ItemStatus, McpToolCall, ThreadEvent};
use crate::framer::LineText;
use crate::json::Text;
use crate::json::write::{Object, array, object};

use super::long_lines::with_omission_mark;

/// Appends one event, without a line end. `source` is the line it came from; it supplies the missing parts of
/// a text.
pub(super) fn event(event: &ThreadEvent<'_>, source: &LineText<'_>, out: &mut Vec<u8>) {
    object(out, |line| {
        line.plain("type", event.type_name());
        match event {
            ThreadEvent::TurnStarted => {}
            ThreadEvent::ThreadStarted { thread_id } => line.text("thread_id", thread_id),
            ThreadEvent::TurnCompleted { usage } => line.value("usage", &usage.unwrap_or_default()),
            ThreadEvent::TurnFailed { error } => write_error(&error.message, line),
            ThreadEvent::Error { message } => line.text("message", message),
            ThreadEvent::Item { item, .. } => line.object("item", |object| write_item(item, source, object)),
        }
    });
}

fn write_error(message: &Text<'_>, object: &mut Object<'_>) {
    object.object("error", |error| error.text("message", message));
}

fn write_item(item: &Item<'_>, source: &LineText<'_>, object: &mut Object<'_>) {
    object.text("id", &item.id);
    match &item.details {
        ItemDetails::Other { kind } => object.text("type", kind),
        details => object.plain("type", details.type_name()),
    }
    write_details(&item.details, source, object);
    if let Some(status) = item.status.filter(|status| *status != ItemStatus::Other) {
        object.plain("status", status.name());
    }
}

fn write_details(details: &ItemDetails<'_>, source: &LineText<'_>, object: &mut Object<'_>) {
    match details {
        ItemDetails::AgentMessage { text } | ItemDetails::Reasoning { text } => {
            write_text("text", text, source, object);
        }
        ItemDetails::CommandExecution(command) => {
            object.text("command", &command.command);
            write_text("aggregated_output", &command.output, source, object);
            if let Some(code) = command.exit_code {
                object.value("exit_code", &code);
            }
        }
        ItemDetails::FileChange { changes } => write_objects("changes", changes, object, |change, object| {
            object.text("path", &change.path);
            object.plain("kind", change.kind.name());
        }),
        ItemDetails::McpToolCall(call) => write_mcp_call(call, object),
        ItemDetails::WebSearch { query, action } => {
            object.text("query", query);
            if let Some(action) = action {
                object.raw("action", action);
            }
        }
        ItemDetails::TodoList { items } => write_objects("items", items, object, |todo, object| {
            object.text("text", &todo.text);
            object.value("completed", &todo.completed);
        }),
        ItemDetails::Error { message } => write_text("message", message, source, object),
        ItemDetails::CollabToolCall(call) => write_collab_call(call, object),
        ItemDetails::Other { .. } => {}
    }
}

fn write_objects<T>(key: &str, elements: &[T], parent: &mut Object<'_>, write: impl Fn(&T, &mut Object<'_>)) {
    parent.with(key, |out| {
        array(out, elements, |out, element| object(out, |object| write(element, object)));
    });
}

/// Writes a text that may be the beginning of a longer one.
fn write_text(key: &str, text: &Text<'_>, source: &LineText<'_>, object: &mut Object<'_>) {
    match with_omission_mark(text, source) {
        Some(marked_text) => object.plain(key, &marked_text),
        None => object.text(key, text),
    }
}

fn write_mcp_call(call: &McpToolCall<'_>, object: &mut Object<'_>) {
    object.text("server", &call.server);
    object.text("tool", &call.tool);
    for (key, json) in [("arguments", &call.arguments), ("result", &call.result)] {
        if let Some(json) = json {
            object.raw(key, &json.resolve());
        }
    }
    if let Some(message) = &call.error {
        write_error(message, object);
    }
}

fn write_collab_call(call: &CollabToolCall<'_>, object: &mut Object<'_>) {
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
