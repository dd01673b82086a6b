//! Decodes the items of Codex exec events.
//!
//! The fields of all item types are collected into one struct, because `type` need not come first.
//! [`ItemFields::into_item`] then picks the fields that belong to the type.

use super::{Remains, first, read_message, text_into};
use crate::event::{
    ChangeKind, CollabToolCall, CommandExecution, FileChange, Item, ItemDetails, ItemStatus, McpToolCall,
    Todo,
};
use crate::json::{Cursor, Scan, Text};

#[derive(Debug, Default)]
pub(super) struct ItemFields<'a> {
    pub(super) id: Option<Text<'a>>,
    kind: Option<Text<'a>>,
    status: Option<Text<'a>>,
    /// `text` of a message or of reasoning, `message` of a warning, `command`, or `query`; no item type has two of
    /// them.
    text: Option<Text<'a>>,
    output: Option<Text<'a>>,
    exit_code: Option<i32>,
    changes: Vec<FileChange<'a>>,
    todos: Vec<Todo<'a>>,
    action: Option<&'a str>,
    call: Option<Box<CallFields<'a>>>,
}

/// Fields that only tool calls have.
#[derive(Debug, Default)]
struct CallFields<'a> {
    server: Option<Text<'a>>,
    tool: Option<Text<'a>>,
    arguments: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<Text<'a>>,
    sender_thread_id: Option<Text<'a>>,
    receiver_thread_ids: Option<&'a str>,
    prompt: Option<Text<'a>>,
    agents_states: Option<&'a str>,
}

impl<'a> ItemFields<'a> {
    pub(super) fn read(&mut self, cursor: &mut Cursor<'a>) -> Scan<()> {
        cursor.object(|cursor, key| {
            match key.simple().unwrap_or_default() {
                "id" => text_into(cursor, &mut self.id)?,
                "type" => text_into(cursor, &mut self.kind)?,
                "status" => text_into(cursor, &mut self.status)?,
                "text" | "message" | "command" | "query" => text_into(cursor, &mut self.text)?,
                "aggregated_output" => text_into(cursor, &mut self.output)?,
                "exit_code" => {
                    let code = cursor.integer()?.and_then(|code| i32::try_from(code).ok());
                    first(&mut self.exit_code, code);
                }
                "changes" if self.changes.is_empty() && cursor.peek() == Some(b'[') => {
                    read_changes(cursor, &mut self.changes)?;
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
        let is_ours = matches!(
            key,
            "server"
                | "tool"
                | "arguments"
                | "result"
                | "error"
                | "sender_thread_id"
                | "receiver_thread_ids"
                | "prompt"
                | "agents_states"
        );
        if !is_ours {
            return cursor.skip();
        }
        let call = self.call.get_or_insert_default();
        match key {
            "server" => text_into(cursor, &mut call.server)?,
            "tool" => text_into(cursor, &mut call.tool)?,
            "arguments" => first(&mut call.arguments, cursor.raw_unless_null()?),
            "result" => first(&mut call.result, cursor.raw_unless_null()?),
            "error" if cursor.peek() == Some(b'{') => read_message(cursor, &mut call.error)?,
            "error" => text_into(cursor, &mut call.error)?,
            "sender_thread_id" => text_into(cursor, &mut call.sender_thread_id)?,
            "receiver_thread_ids" => first(&mut call.receiver_thread_ids, cursor.raw_unless_null()?),
            "prompt" => text_into(cursor, &mut call.prompt)?,
            _ => first(&mut call.agents_states, cursor.raw_unless_null()?),
        }
        Ok(())
    }

    pub(super) fn into_item(mut self, remains: Option<Remains<'a>>) -> Item<'a> {
        if let Some(Remains { facts, .. }) = remains {
            let plain = |text: &'a Option<String>| text.as_deref().map(Text::plain);
            first(&mut self.id, plain(&facts.inner.id));
            first(&mut self.kind, plain(&facts.inner.kind));
            first(&mut self.status, plain(&facts.inner.status));
            first(&mut self.exit_code, facts.inner.exit_code.and_then(|code| i32::try_from(code).ok()));
        }
        let status = self.status.as_ref().map(|s| ItemStatus::from_name(s.simple().unwrap_or_default()));
        let id = self.id.take().unwrap_or_default();
        let longest = remains.and_then(|remains| remains.facts.longest_string);
        let full_bytes = longest.map(|(from, to)| to - from);
        Item { id, status, details: self.into_details(remains), full_bytes }
    }

    fn into_details(self, remains: Option<Remains<'a>>) -> ItemDetails<'a> {
        let kind = self.kind.unwrap_or_default();
        let text = self.text.unwrap_or_default();
        match kind.simple().unwrap_or_default() {
            "agent_message" => ItemDetails::AgentMessage { text },
            "reasoning" => ItemDetails::Reasoning { text },
            "command_execution" => {
                let output = self.output.unwrap_or_default();
                let (output_bytes, output_tail) = match remains {
                    Some(remains) => remains.end_of_longest_string(&output),
                    None => (output.len() as u64, None),
                };
                let exit_code = self.exit_code;
                ItemDetails::CommandExecution(CommandExecution {
                    command: text,
                    output,
                    output_tail,
                    output_bytes,
                    exit_code,
                })
            }
            "file_change" => ItemDetails::FileChange { changes: self.changes },
            "mcp_tool_call" => ItemDetails::McpToolCall(self.call.unwrap_or_default().into_mcp_call()),
            "web_search" => ItemDetails::WebSearch { query: text, action: self.action },
            "todo_list" => ItemDetails::TodoList { items: self.todos },
            "error" => ItemDetails::Error { message: text },
            "collab_tool_call" => {
                ItemDetails::CollabToolCall(self.call.unwrap_or_default().into_collab_call())
            }
            _ => ItemDetails::Other { kind },
        }
    }
}

impl<'a> CallFields<'a> {
    fn into_mcp_call(self) -> McpToolCall<'a> {
        McpToolCall {
            server: self.server.unwrap_or_default(),
            tool: self.tool.unwrap_or_default(),
            arguments: self.arguments.map(Text::plain),
            result: self.result.map(Text::plain),
            error: self.error,
        }
    }

    fn into_collab_call(self) -> CollabToolCall<'a> {
        CollabToolCall {
            tool: self.tool.unwrap_or_default(),
            sender_thread_id: self.sender_thread_id,
            receiver_thread_ids: self.receiver_thread_ids,
            prompt: self.prompt,
            agents_states: self.agents_states.map(Text::plain),
        }
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

/// `[{"path":…,"kind":…}]`
fn read_changes<'a>(cursor: &mut Cursor<'a>, changes: &mut Vec<FileChange<'a>>) -> Scan<()> {
    cursor.array(|cursor| {
        if cursor.peek() != Some(b'{') {
            return cursor.skip();
        }
        let (mut path, mut kind) = (None, None);
        cursor.object(|cursor, key| match key.simple() {
            Some("path") => text_into(cursor, &mut path),
            Some("kind") => text_into(cursor, &mut kind),
            _ => cursor.skip(),
        })?;
        if let Some(path) = path {
            let kind = ChangeKind::from_name(kind.as_ref().and_then(Text::simple).unwrap_or_default());
            changes.push(FileChange { path, kind });
        }
        Ok(())
    })
}

/// `[{"text":…,"completed":…}]`; in the Codex protocol `[{"step":…,"status":…}]`.
pub(super) fn read_todos<'a>(cursor: &mut Cursor<'a>, text_key: &str, todos: &mut Vec<Todo<'a>>) -> Scan<()> {
    cursor.array(|cursor| {
        if cursor.peek() != Some(b'{') {
            return cursor.skip();
        }
        let (mut text, mut completed) = (None, None);
        cursor.object(|cursor, key| {
            match key.simple() {
                Some(key) if key == text_key => text_into(cursor, &mut text)?,
                Some("completed") => first(&mut completed, cursor.boolean()?),
                Some("status") => {
                    first(&mut completed, cursor.text()?.map(|status| status == *"completed"));
                }
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        if let Some(text) = text {
            todos.push(Todo { text, completed: completed.unwrap_or(false) });
        }
        Ok(())
    })
}
