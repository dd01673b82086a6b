//! Decodes `EventMsg` messages of the Codex protocol.

use super::error::TopError;
use super::item::read_todos;
use super::turn_item::{TurnItem, decode_turn_item};
use super::usage::{UsageFields, read_usage};
use super::{Nested, Remains, first, nested_into, read_message, text_into};
use crate::event::{ChangeKind, FileChange, McpToolCall, Todo, Usage};
use crate::json::{Cursor, Scan, Text};
use crate::protocol::ProtocolEvent;
use crate::shell;

/// The fields of all `EventMsg` types that we map.
#[derive(Debug, Default)]
struct MessageFields<'a> {
    kind: Option<Text<'a>>,
    call_id: Option<Text<'a>>,
    session_id: Option<Text<'a>>,
    /// `message`, `text` or `query`
    text: Option<Text<'a>>,
    summary: Option<Text<'a>>,
    command: Vec<String>,
    output: Option<Text<'a>>,
    stdout: Option<Text<'a>>,
    stderr: Option<Text<'a>>,
    exit_code: Option<i64>,
    call: Option<McpToolCall<'a>>,
    result: Option<Nested<'a>>,
    changes: Vec<FileChange<'a>>,
    success: Option<bool>,
    action: Option<&'a str>,
    plan: Vec<Todo<'a>>,
    usage: Option<Usage>,
    /// Token counts at the top level of the message; they are the counts of one request.
    request: UsageFields,
    error: Option<Text<'a>>,
    item: Option<Nested<'a>>,
}

pub(super) fn decode_protocol<'a>(message: Nested<'a>, remains: Option<Remains<'a>>) -> ProtocolEvent<'a> {
    let mut fields = MessageFields::default();
    // The grammar of the line has been checked. Only a truncated line can fail here, and then the fields read so far
    // count.
    let read = fields.read(&mut Cursor::new(message.0));
    if let (Err(_), Some(Remains { facts, .. })) = (read, remains) {
        let plain = |text: &'a Option<String>| text.as_deref().map(Text::plain);
        first(&mut fields.kind, plain(&facts.inner.kind));
        first(&mut fields.call_id, plain(&facts.inner.call_id));
        first(&mut fields.exit_code, facts.inner.exit_code);
    }
    fields.into_event()
}

impl<'a> MessageFields<'a> {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Scan<()> {
        cursor.object(|cursor, key| {
            match key.simple().unwrap_or_default() {
                "type" => text_into(cursor, &mut self.kind)?,
                "call_id" => text_into(cursor, &mut self.call_id)?,
                "session_id" | "thread_id" => text_into(cursor, &mut self.session_id)?,
                "message" | "text" | "query" => text_into(cursor, &mut self.text)?,
                "summary" => text_into(cursor, &mut self.summary)?,
                "command" if self.command.is_empty() => read_command(cursor, &mut self.command)?,
                "aggregated_output" => text_into(cursor, &mut self.output)?,
                "stdout" => text_into(cursor, &mut self.stdout)?,
                "stderr" => text_into(cursor, &mut self.stderr)?,
                "exit_code" => first(&mut self.exit_code, cursor.integer()?),
                "invocation" if self.call.is_none() && cursor.peek() == Some(b'{') => {
                    read_invocation(cursor, self.call.insert(McpToolCall::default()))?;
                }
                "result" if cursor.peek() != Some(b'n') => nested_into(cursor, &mut self.result)?,
                "changes" if self.changes.is_empty() && cursor.peek() == Some(b'{') => {
                    read_change_map(cursor, &mut self.changes)?;
                }
                "success" => first(&mut self.success, cursor.boolean()?),
                "action" => first(&mut self.action, cursor.raw_unless_null()?),
                "plan" if self.plan.is_empty() && cursor.peek() == Some(b'[') => {
                    read_todos(cursor, "step", &mut self.plan)?;
                }
                "info" if cursor.peek() == Some(b'{') => read_info(cursor, &mut self.usage)?,
                "error" if cursor.peek() == Some(b'{') => read_message(cursor, &mut self.error)?,
                "item" if cursor.peek() == Some(b'{') => nested_into(cursor, &mut self.item)?,
                key => self.request.read(cursor, key)?,
            }
            Ok(())
        })
    }

    fn into_event(self) -> ProtocolEvent<'a> {
        let Some(kind) = self.kind else { return ProtocolEvent::Unknown { kind: None } };
        let call_id = self.call_id.unwrap_or_default();
        let text = self.text.unwrap_or_default();
        match kind.simple().unwrap_or_default() {
            "session_configured" => {
                ProtocolEvent::SessionConfigured { session_id: self.session_id.unwrap_or_default() }
            }
            "task_started" | "turn_started" => ProtocolEvent::TaskStarted,
            "task_complete" | "turn_complete" => ProtocolEvent::TaskComplete { error: self.error },
            "turn_aborted" => ProtocolEvent::TurnAborted,
            "user_message" => ProtocolEvent::UserMessage { message: text },
            "agent_message" => ProtocolEvent::AgentMessage { message: text },
            "agent_reasoning" => ProtocolEvent::AgentReasoning { text },
            "exec_command_begin" => {
                let command = Text::owned(shell::join(&self.command));
                ProtocolEvent::ExecCommandBegin { call_id, command }
            }
            "exec_command_end" => ProtocolEvent::ExecCommandEnd {
                call_id,
                output: merged_output(self.output, self.stdout, self.stderr),
                exit_code: self.exit_code.and_then(|code| i32::try_from(code).ok()).unwrap_or(-1),
            },
            "mcp_tool_call_begin" => {
                ProtocolEvent::McpToolCallBegin { call_id, call: self.call.unwrap_or_default() }
            }
            "mcp_tool_call_end" => {
                let mut call = self.call.unwrap_or_default();
                let success = self.result.is_some_and(|result| read_result(result, &mut call));
                ProtocolEvent::McpToolCallEnd { call_id, call, success }
            }
            "patch_apply_begin" => ProtocolEvent::PatchApplyBegin { call_id, changes: self.changes },
            "patch_apply_end" => {
                let success = self.success.unwrap_or(false);
                ProtocolEvent::PatchApplyEnd { call_id, success, changes: self.changes }
            }
            "web_search_end" => ProtocolEvent::WebSearchEnd { call_id, query: text, action: self.action },
            "plan_update" => ProtocolEvent::PlanUpdate { items: self.plan },
            "token_count" => {
                ProtocolEvent::TokenCount { usage: self.usage, request: self.request.into_usage() }
            }
            "error" => ProtocolEvent::Error { message: text },
            "stream_error" => ProtocolEvent::StreamError { message: text },
            "warning" => ProtocolEvent::Warning { message: text },
            "deprecation_notice" => ProtocolEvent::Warning { message: self.summary.unwrap_or(text) },
            "item_started" | "item_completed" => match self.item.map(decode_turn_item) {
                Some(TurnItem::Item(item)) => {
                    ProtocolEvent::TurnItem { completed: kind == *"item_completed", item }
                }
                Some(TurnItem::UserText(message)) => ProtocolEvent::UserMessage { message },
                Some(TurnItem::Other) | None => ProtocolEvent::Ignored { kind },
            },
            name if is_ignored(name) => ProtocolEvent::Ignored { kind },
            _ => ProtocolEvent::Unknown { kind: Some(kind) },
        }
    }
}

/// Types that Codex exec events leave out on purpose: deltas, approval requests, review mode, list responses,
/// bookkeeping.
fn is_ignored(kind: &str) -> bool {
    const NAMES: &[&str] = &[
        "web_search_begin",
        "background_event",
        "turn_diff",
        "entered_review_mode",
        "exited_review_mode",
        "shutdown_complete",
        "agent_reasoning_section_break",
        "agent_reasoning_raw_content",
        "conversation_path",
        "view_image_tool_call",
        "raw_response_item",
        "undo_started",
        "undo_completed",
        "context_compacted",
        "compacted",
        "thread_settings_applied",
        "thread_rolled_back",
        "thread_name_updated",
        "model_reroute",
        "mcp_startup_update",
        "mcp_startup_complete",
        "terminal_interaction",
        "elicitation_request",
        "request_user_input",
        "hook_started",
        "hook_completed",
    ];
    NAMES.contains(&kind)
        || kind.ends_with("_delta")
        || kind.ends_with("_approval_request")
        || kind.ends_with("_response")
}

/// Codex stores the command as an array of arguments; a single string is split as a command line.
fn read_command(cursor: &mut Cursor<'_>, words: &mut Vec<String>) -> Scan<()> {
    if cursor.peek() != Some(b'[') {
        let line = cursor.text()?.map(|text| text.resolve().into_owned());
        words.extend(line.map(|line| shell::split(&line).unwrap_or(vec![line])).into_iter().flatten());
        return Ok(());
    }
    cursor.array(|cursor| {
        words.extend(cursor.text()?.map(|word| word.resolve().into_owned()));
        Ok(())
    })
}

fn merged_output<'a>(
    merged: Option<Text<'a>>,
    stdout: Option<Text<'a>>,
    stderr: Option<Text<'a>>,
) -> Text<'a> {
    if let Some(merged) = merged.filter(|text| !text.is_empty()) {
        return merged;
    }
    match (stdout.unwrap_or_default(), stderr.unwrap_or_default()) {
        (stdout, stderr) if stderr.is_empty() => stdout,
        (stdout, stderr) if stdout.is_empty() => stderr,
        (stdout, stderr) => Text::owned(format!("{}{}", stdout.resolve(), stderr.resolve())),
    }
}

fn read_invocation<'a>(cursor: &mut Cursor<'a>, call: &mut McpToolCall<'a>) -> Scan<()> {
    let (mut server, mut tool) = (None, None);
    let read = cursor.object(|cursor, key| {
        match key.simple() {
            Some("server") => text_into(cursor, &mut server)?,
            Some("tool") => text_into(cursor, &mut tool)?,
            Some("arguments") => first(&mut call.arguments, cursor.raw_unless_null()?.map(Text::plain)),
            _ => cursor.skip()?,
        }
        Ok(())
    });
    (call.server, call.tool) = (server.unwrap_or_default(), tool.unwrap_or_default());
    read
}

/// Reads `{"Ok":{"content":…,"isError":…}}`, `{"Err":…}`, or the bare result into the call; returns whether it
/// succeeded.
fn read_result<'a>(result: Nested<'a>, call: &mut McpToolCall<'a>) -> bool {
    let (mut ok, mut error, mut is_err) = (None, None, false);
    let mut cursor = Cursor::new(result.0);
    let read = match cursor.peek() {
        Some(b'{') => cursor.object(|cursor, key| {
            match key.simple() {
                Some("Ok" | "ok") => first(&mut ok, Some(cursor.raw()?)),
                Some("Err" | "err") => {
                    is_err = true;
                    TopError::read(cursor, &mut error)?;
                }
                _ => cursor.skip()?,
            }
            Ok(())
        }),
        _ => cursor.skip(),
    };
    if is_err {
        call.error = error.map(TopError::message_or_whole);
    }
    // A truncated result is not known to be a success, and is not valid JSON to pass on.
    if read.is_err() {
        return false;
    }
    let result = ok.or((!is_err).then_some(result.0));
    call.result = result.map(|raw| Text::owned(super::turn_item::codex_exec_result(raw)));
    result.is_some_and(|raw| !is_error_result(raw)) && !is_err
}

/// Whether an MCP result has `isError` set.
fn is_error_result(raw: &str) -> bool {
    let mut is_error = None;
    let _ = Cursor::new(raw).object(|cursor, key| {
        match key.simple() {
            Some("isError" | "is_error") => first(&mut is_error, cursor.boolean()?),
            _ => cursor.skip()?,
        }
        Ok(())
    });
    is_error.unwrap_or(false)
}

/// `{"path":{"add":…}}`; in newer versions `{"path":{"type":"add",…}}`.
pub(super) fn read_change_map<'a>(cursor: &mut Cursor<'a>, changes: &mut Vec<FileChange<'a>>) -> Scan<()> {
    cursor.object(|cursor, path| {
        if cursor.peek() != Some(b'{') {
            return cursor.skip();
        }
        let (mut named, mut tagged) = (None, None);
        cursor.object(|cursor, key| {
            match key.simple() {
                Some("type") => text_into(cursor, &mut tagged)?,
                Some(name @ ("add" | "delete" | "update" | "Add" | "Delete" | "Update")) => {
                    first(&mut named, Some(ChangeKind::from_name(name)));
                    cursor.skip()?;
                }
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        let tagged = tagged.map(|name| ChangeKind::from_name(name.simple().unwrap_or_default()));
        let kind = tagged.or(named).unwrap_or(ChangeKind::Update);
        changes.push(FileChange { path: path.clone(), kind });
        Ok(())
    })?;
    // A map has no order; Codex shows changes sorted by path.
    changes.sort_by(|a, b| a.path.resolve().cmp(&b.path.resolve()));
    Ok(())
}

fn read_info(cursor: &mut Cursor<'_>, usage: &mut Option<Usage>) -> Scan<()> {
    cursor.object(|cursor, key| {
        match key.simple() {
            Some("total_token_usage") => first(usage, read_usage(cursor)?),
            _ => cursor.skip()?,
        }
        Ok(())
    })
}
