//! Decodes items of the Codex protocol (`item_started`, `item_completed`) into items of Codex exec events.
//!
//! Newer session files use them in place of begin and end events. Names are in camel case, changes are a map, and some
//! results are spelled differently; the content is the same.

use super::item::read_todos;
use super::protocol::read_change_map;
use super::{Nested, first, read_message, text_into};
use crate::event::{
    CollabToolCall, CommandExecution, FileChange, Item, ItemDetails, ItemStatus, McpToolCall, Todo,
};
use crate::json::{Cursor, Scan, Text, write};
use crate::shell;

#[derive(Debug, Default)]
struct TurnItemFields<'a> {
    kind: Option<Text<'a>>,
    id: Option<Text<'a>>,
    status: Option<Text<'a>>,
    /// The texts of `content` or of `summary_text`.
    texts: Vec<Text<'a>>,
    query: Option<Text<'a>>,
    command: Vec<String>,
    output: Option<Text<'a>>,
    exit_code: Option<i32>,
    changes: Vec<FileChange<'a>>,
    todos: Vec<Todo<'a>>,
    action: Option<&'a str>,
    server: Option<Text<'a>>,
    /// Of an MCP call or a sub-agent call.
    tool: Option<Text<'a>>,
    call: McpToolCall<'a>,
    collab: CollabToolCall<'a>,
}

/// The result of decoding an item of the protocol.
#[derive(Debug)]
pub(super) enum TurnItem<'a> {
    Item(Item<'a>),
    /// A message of the user.
    UserText(Text<'a>),
    /// An item that has no counterpart in Codex exec events: images, compaction, …
    Other,
}

pub(super) fn decode_turn_item(item: Nested<'_>) -> TurnItem<'_> {
    let mut fields = TurnItemFields::default();
    // The grammar has been checked; of a truncated item, the fields read so far count.
    let _ = fields.read(&mut Cursor::new(item.0));
    if fields.kind.as_ref().is_some_and(|kind| *kind == *"UserMessage") {
        return TurnItem::UserText(fields.joined_texts());
    }
    fields.into_item().map_or(TurnItem::Other, TurnItem::Item)
}

impl<'a> TurnItemFields<'a> {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Scan<()> {
        cursor.object(|cursor, key| {
            match key.simple().unwrap_or_default() {
                "type" => text_into(cursor, &mut self.kind)?,
                "id" => text_into(cursor, &mut self.id)?,
                "status" => text_into(cursor, &mut self.status)?,
                "content" | "summary_text" if self.texts.is_empty() && cursor.peek() == Some(b'[') => {
                    read_texts(cursor, &mut self.texts)?;
                }
                "query" => text_into(cursor, &mut self.query)?,
                "command" if self.command.is_empty() && cursor.peek() == Some(b'[') => {
                    cursor.array(|cursor| {
                        self.command.extend(cursor.text()?.map(|word| word.resolve().into_owned()));
                        Ok(())
                    })?
                }
                "aggregated_output" => text_into(cursor, &mut self.output)?,
                "exit_code" => {
                    let code = cursor.integer()?.and_then(|code| i32::try_from(code).ok());
                    first(&mut self.exit_code, code);
                }
                "changes" if self.changes.is_empty() && cursor.peek() == Some(b'{') => {
                    read_change_map(cursor, &mut self.changes)?;
                }
                "items" if self.todos.is_empty() && cursor.peek() == Some(b'[') => {
                    read_todos(cursor, "text", &mut self.todos)?;
                }
                "action" => first(&mut self.action, cursor.raw_unless_null()?),
                key => return self.read_call(cursor, key),
            }
            Ok(())
        })
    }

    fn read_call(&mut self, cursor: &mut Cursor<'a>, key: &str) -> Scan<()> {
        match key {
            "server" => text_into(cursor, &mut self.server)?,
            "tool" => text_into(cursor, &mut self.tool)?,
            "arguments" => first(&mut self.call.arguments, cursor.raw_unless_null()?.map(Text::plain)),
            "result" => {
                let result = cursor.raw_unless_null()?;
                first(&mut self.call.result, result.map(|raw| Text::owned(codex_exec_result(raw))));
            }
            "error" if cursor.peek() == Some(b'{') => read_message(cursor, &mut self.call.error)?,
            "sender_thread_id" => text_into(cursor, &mut self.collab.sender_thread_id)?,
            "receiver_thread_ids" => {
                first(&mut self.collab.receiver_thread_ids, cursor.raw_unless_null()?);
            }
            "prompt" => text_into(cursor, &mut self.collab.prompt)?,
            "agents_states" if cursor.peek() == Some(b'{') => {
                first(&mut self.collab.agents_states, Some(Text::owned(read_agents_states(cursor)?)));
            }
            _ => cursor.skip()?,
        }
        Ok(())
    }

    fn joined_texts(&self) -> Text<'a> {
        match self.texts.as_slice() {
            [single] => single.clone(),
            several => {
                let texts: Vec<_> = several.iter().map(Text::resolve).collect();
                Text::owned(texts.join("\n"))
            }
        }
    }

    fn into_item(self) -> Option<Item<'a>> {
        let details = match self.kind.as_ref()?.simple()? {
            "AgentMessage" => ItemDetails::AgentMessage { text: self.joined_texts() },
            "Reasoning" if self.joined_texts().is_empty() => return None,
            "Reasoning" => ItemDetails::Reasoning { text: self.joined_texts() },
            "CommandExecution" => {
                let output = self.output.unwrap_or_default();
                ItemDetails::CommandExecution(CommandExecution {
                    command: Text::owned(shell::join(&self.command)),
                    output_bytes: output.len() as u64,
                    output,
                    output_tail: None,
                    exit_code: self.exit_code,
                })
            }
            "FileChange" => ItemDetails::FileChange { changes: self.changes },
            "McpToolCall" => ItemDetails::McpToolCall(McpToolCall {
                server: self.server.unwrap_or_default(),
                tool: self.tool.unwrap_or_default(),
                ..self.call
            }),
            "WebSearch" => {
                ItemDetails::WebSearch { query: self.query.unwrap_or_default(), action: self.action }
            }
            "TodoList" => ItemDetails::TodoList { items: self.todos },
            "CollabAgentToolCall" => ItemDetails::CollabToolCall(CollabToolCall {
                tool: self.tool.unwrap_or_default(),
                ..self.collab
            }),
            _ => return None,
        };
        let status = self.status.as_ref().map(|s| ItemStatus::from_name(s.simple().unwrap_or_default()));
        Some(Item { id: self.id.unwrap_or_default(), status, details, full_bytes: None })
    }
}

/// Reads the texts of an array of strings, or of objects with a `text`.
pub(super) fn read_texts<'a>(cursor: &mut Cursor<'a>, texts: &mut Vec<Text<'a>>) -> Scan<()> {
    cursor.array(|cursor| {
        let mut text = None;
        if cursor.peek() == Some(b'{') {
            cursor.object(|cursor, key| match key.simple() {
                Some("text") => text_into(cursor, &mut text),
                _ => cursor.skip(),
            })?;
        } else {
            text = cursor.text()?;
        }
        texts.extend(text);
        Ok(())
    })
}

/// Spells an MCP result as Codex exec events do: `structured_content` always present, no `isError` (the status has it).
/// A value without any field of an MCP result is returned unchanged.
pub(super) fn codex_exec_result(raw: &str) -> String {
    let (mut content, mut meta, mut structured) = (None, None, None);
    let mut is_foreign = false;
    let read = Cursor::new(raw).object(|cursor, key| {
        match key.simple() {
            Some("content") => first(&mut content, cursor.raw_unless_null()?),
            Some("_meta") => first(&mut meta, cursor.raw_unless_null()?),
            Some("structuredContent" | "structured_content") => {
                first(&mut structured, cursor.raw_unless_null()?);
            }
            Some("isError" | "is_error") => cursor.skip()?,
            _ => {
                is_foreign = true;
                cursor.skip()?;
            }
        }
        Ok(())
    });
    let is_foreign = is_foreign && content.is_none() && structured.is_none();
    if read.is_err() || is_foreign {
        return raw.to_owned();
    }
    let mut out = Vec::with_capacity(raw.len() + 32);
    let mut object = write::Object::open(&mut out);
    object.raw("content", content.unwrap_or("[]"));
    if let Some(meta) = meta {
        object.raw("_meta", meta);
    }
    object.raw("structured_content", structured.unwrap_or("null"));
    object.close();
    String::from_utf8(out).unwrap_or_default()
}

/// `{"id":"pending_init"}` and `{"id":{"completed":"text"}}` as `{"id":{"status":…,"message":…}}`.
fn read_agents_states(cursor: &mut Cursor<'_>) -> Scan<String> {
    let mut states: Vec<(Text<'_>, Text<'_>, Option<Text<'_>>)> = Vec::new();
    cursor.object(|cursor, thread| {
        let (mut status, mut message) = (Text::default(), None);
        if cursor.peek() == Some(b'{') {
            cursor.object(|cursor, key| {
                status = key.clone();
                message = cursor.text()?;
                Ok(())
            })?;
        } else {
            status = cursor.text()?.unwrap_or_default();
        }
        states.push((thread.clone(), status, message));
        Ok(())
    })?;
    let mut out = Vec::new();
    let mut object = write::Object::open(&mut out);
    for (thread, status, message) in &states {
        object.with(&thread.resolve(), |out| {
            let mut state = write::Object::open(out);
            state.text("status", status);
            match message {
                Some(message) => state.text("message", message),
                None => state.raw("message", "null"),
            }
            state.close();
        });
    }
    object.close();
    Ok(String::from_utf8(out).unwrap_or_default())
}
