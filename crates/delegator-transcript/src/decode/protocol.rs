//! Decodes `EventMsg` messages of the Codex protocol, and the lines of session files (rollouts).

use crate::event::{AgentError, CommandExecution, Item, ItemDetails, ItemStatus, McpToolCall};
use crate::json::{Ending, Object, Text, Value};
use crate::longline::LineRemains;
use crate::protocol::{ProtocolEvent, ResponseItem, RolloutHead, RolloutLine, RolloutPayload};
use crate::shell;
use crate::values::{
    agents_states, codex_error_code, codex_exec_result, collab_call, error_message, error_object,
    file_changes, finished_mcp_call, mcp_call, read_todos, read_usage, usage_object,
};

pub(super) fn decode_protocol<'a>(
    fields: &Object<'a>,
    remains: Option<LineRemains<'a>>,
) -> ProtocolEvent<'a> {
    let facts = remains.map(|remains| &remains.facts.inner).filter(|_| fields.ending != Ending::Complete);
    let late_kind = facts.and_then(|facts| facts.kind.as_deref()).map(Text::plain);
    let Some(kind) = fields.text("type").or(late_kind) else { return ProtocolEvent::Unknown { kind: None } };
    let late_call_id = facts.and_then(|facts| facts.call_id.as_deref()).map(Text::plain);
    let call_id = fields.text("call_id").or(late_call_id).unwrap_or_default();
    let text = || fields.first(&["message", "text", "query"], Value::text).unwrap_or_default();
    match kind.simple().unwrap_or_default() {
        "session_configured" => ProtocolEvent::SessionConfigured {
            session_id: fields.first(&["session_id", "thread_id"], Value::text).unwrap_or_default(),
        },
        "task_started" | "turn_started" => ProtocolEvent::TaskStarted,
        "task_complete" | "turn_complete" => {
            ProtocolEvent::TaskComplete { error: fields.first(&["error"], error_object) }
        }
        "turn_aborted" => ProtocolEvent::TurnAborted,
        "user_message" => ProtocolEvent::UserMessage { message: text() },
        "agent_message" => ProtocolEvent::Item(ItemDetails::AgentMessage { text: text() }),
        "agent_reasoning" => ProtocolEvent::Item(ItemDetails::Reasoning { text: text() }),
        "web_search_end" => {
            ProtocolEvent::Item(ItemDetails::WebSearch { query: text(), action: fields.raw("action") })
        }
        "plan_update" => ProtocolEvent::PlanUpdate { items: read_todos(fields, "plan", "step") },
        "token_count" => ProtocolEvent::TokenCount {
            usage: fields.first(&["info"], |info| info.object()?.first(&["total_token_usage"], usage_object)),
            request: read_usage(fields),
        },
        "error" => {
            ProtocolEvent::Error { error: AgentError { message: text(), code: codex_error_code(fields) } }
        }
        "stream_error" => ProtocolEvent::StreamError { message: text() },
        "warning" => ProtocolEvent::Item(ItemDetails::Error { message: text() }),
        "deprecation_notice" => {
            let message = fields.text("summary").unwrap_or_else(text);
            ProtocolEvent::Item(ItemDetails::Error { message })
        }
        name @ ("item_started" | "item_completed") => {
            let item = fields.object("item").unwrap_or_default();
            decode_turn_item(&item, name == "item_completed").unwrap_or(ProtocolEvent::Ignored)
        }
        "exec_command_end" => {
            let exit_code = fields.integer("exit_code");
            let exit_code = exit_code.or_else(|| facts?.exit_code);
            ProtocolEvent::ExecCommandEnd {
                call_id,
                output: decode_output(fields),
                exit_code: exit_code.and_then(|code| i32::try_from(code).ok()).unwrap_or(-1),
            }
        }
        name if is_ignored(name) => ProtocolEvent::Ignored,
        name => decode_call(name, call_id, fields).unwrap_or(ProtocolEvent::Unknown { kind: Some(kind) }),
    }
}

fn decode_call<'a>(kind: &str, call_id: Text<'a>, fields: &Object<'a>) -> Option<ProtocolEvent<'a>> {
    Some(match kind {
        "exec_command_begin" => {
            let words = fields.first(&["command"], decode_command).unwrap_or_default();
            ProtocolEvent::ExecCommandBegin { call_id, command: Text::owned(shell::join(&words)) }
        }
        "mcp_tool_call_begin" => ProtocolEvent::McpToolCallBegin { call_id, call: decode_invocation(fields) },
        "mcp_tool_call_end" => {
            let mut call = decode_invocation(fields);
            let result = fields.first(&["result"], |result| Some(result).filter(|r| !r.is_null()));
            let success = result.is_some_and(|result| decode_result(result, &mut call));
            ProtocolEvent::McpToolCallEnd { call_id, call, success }
        }
        "patch_apply_begin" => ProtocolEvent::PatchApplyBegin { call_id, changes: file_changes(fields) },
        "patch_apply_end" => ProtocolEvent::PatchApplyEnd {
            call_id,
            success: fields.first(&["success"], Value::boolean).unwrap_or(false),
            changes: file_changes(fields),
        },
        _ => return None,
    })
}

/// Decodes an item (`item_started`, `item_completed`). Newer session files use items in place of begin and
/// end events. Types without a counterpart in Codex exec events (images, compaction, …) are left out.
fn decode_turn_item<'a>(fields: &Object<'a>, completed: bool) -> Option<ProtocolEvent<'a>> {
    let kind = fields.text("type")?;
    if kind == *"UserMessage" {
        return Some(ProtocolEvent::UserMessage { message: joined_texts(fields) });
    }
    let status = fields.text("status");
    let item = Item {
        id: fields.text("id").unwrap_or_default(),
        status: status.map(|status| ItemStatus::read(status.simple().unwrap_or_default())),
        details: decode_item_details(kind.simple()?, fields)?,
        full_bytes: None,
    };
    Some(ProtocolEvent::TurnItem { completed, item })
}

fn decode_item_details<'a>(kind: &str, fields: &Object<'a>) -> Option<ItemDetails<'a>> {
    Some(match kind {
        "AgentMessage" => ItemDetails::AgentMessage { text: joined_texts(fields) },
        "Reasoning" => {
            ItemDetails::Reasoning { text: Some(joined_texts(fields)).filter(|text| !text.is_empty())? }
        }
        "CommandExecution" => {
            let words = fields.list(&["command"], |word| Some(word.text()?.resolve().into_owned()));
            let output = fields.text("aggregated_output").unwrap_or_default();
            let exit_code = fields.first(&["exit_code"], Value::small_integer);
            let command = Text::owned(shell::join(&words));
            ItemDetails::CommandExecution(CommandExecution::ended(command, output, exit_code))
        }
        "FileChange" => ItemDetails::FileChange { changes: file_changes(fields) },
        "McpToolCall" => ItemDetails::McpToolCall(finished_mcp_call(fields)),
        "WebSearch" => ItemDetails::WebSearch {
            query: fields.text("query").unwrap_or_default(),
            action: fields.raw("action"),
        },
        "TodoList" => ItemDetails::TodoList { items: read_todos(fields, "items", "text") },
        "CollabAgentToolCall" => ItemDetails::CollabToolCall(collab_call(fields, agents_states(fields))),
        _ => return None,
    })
}

fn joined_texts<'a>(fields: &Object<'a>) -> Text<'a> {
    Text::joined(fields.list(&["content", "summary_text"], decode_text_part), "\n")
}

/// A string, or an object with a `text`.
fn decode_text_part(part: Value<'_>) -> Option<Text<'_>> {
    part.text().or_else(|| part.object()?.text("text"))
}

/// Types that Codex exec events leave out on purpose: deltas, approval requests, review mode, list responses,
/// bookkeeping.
fn is_ignored(kind: &str) -> bool {
    const NAMES: &str = "web_search_begin background_event turn_diff entered_review_mode exited_review_mode \
        shutdown_complete agent_reasoning_section_break agent_reasoning_raw_content conversation_path \
        view_image_tool_call raw_response_item undo_started undo_completed context_compacted compacted \
        thread_settings_applied thread_rolled_back thread_name_updated model_reroute mcp_startup_update \
        mcp_startup_complete terminal_interaction elicitation_request request_user_input hook_started \
        hook_completed";
    NAMES.split(' ').any(|name| name == kind)
        || kind.ends_with("_delta")
        || kind.ends_with("_approval_request")
        || kind.ends_with("_response")
}

/// Codex stores the command as an array of arguments; a single string is split as a command line.
fn decode_command(command: Value<'_>) -> Option<Vec<String>> {
    let word = |text: Text<'_>| text.resolve().into_owned();
    let words: Vec<String> = match command.elements() {
        Some(words) => words.filter_map(Value::text).map(word).collect(),
        None => {
            command.raw()?;
            let line = word(command.text()?);
            shell::split(&line).unwrap_or(vec![line])
        }
    };
    Some(words).filter(|words| !words.is_empty())
}

/// stdout and stderr, merged by Codex or by us.
fn decode_output<'a>(fields: &Object<'a>) -> Text<'a> {
    if let Some(merged) = fields.text("aggregated_output").filter(|text| !text.is_empty()) {
        return merged;
    }
    let streams = [fields.text("stdout"), fields.text("stderr")].into_iter().flatten();
    Text::joined(streams.filter(|stream| !stream.is_empty()), "")
}

fn decode_invocation<'a>(fields: &Object<'a>) -> McpToolCall<'a> {
    mcp_call(&fields.object("invocation").unwrap_or_default())
}

/// Decodes `{"Ok":{"content":…,"isError":…}}`, `{"Err":…}`, or the bare result into the call; returns whether
/// it succeeded.
fn decode_result<'a>(result: Value<'a>, call: &mut McpToolCall<'a>) -> bool {
    let fields = result.object().unwrap_or_default();
    let is_err = fields.members().any(|(key, _)| matches!(key, "Err" | "err"));
    if is_err {
        call.error =
            fields.first(&["Err", "err"], |error| error_message(error).or_else(|| error.text_or_json()));
    }
    // A truncated result is not known to be a success, and is not valid JSON to pass on.
    let Value::Whole(bare, _) = result else { return false };
    let ok = fields.first(&["Ok", "ok"], |ok| if let Value::Whole(json, _) = ok { Some(json) } else { None });
    let result = ok.or((!is_err).then_some(bare));
    call.result = result.map(|raw| Text::owned(codex_exec_result(raw)));
    let is_error = |raw| Object::read(raw).first(&["isError", "is_error"], Value::boolean) == Some(true);
    result.is_some_and(|raw| !is_error(raw)) && !is_err
}

/// Whether `kind` is a known line type of session files. It identifies such a line when it has no timestamp.
pub(super) fn is_line_type(kind: &Text<'_>) -> bool {
    let names = ["session_meta", "turn_context", "event_msg", "response_item", "compacted"];
    kind.simple().is_some_and(|kind| names.contains(&kind))
}

pub(super) fn decode_rollout<'a>(
    timestamp: Option<Text<'a>>,
    kind: &Text<'a>,
    payload: &Object<'a>,
    remains: Option<LineRemains<'a>>,
) -> RolloutLine<'a> {
    let payload = match kind.simple().unwrap_or_default() {
        "session_meta" => RolloutPayload::SessionMeta(Box::new(decode_head(payload))),
        "turn_context" => {
            RolloutPayload::TurnContext { model: payload.text("model"), cwd: payload.text("cwd") }
        }
        "event_msg" => RolloutPayload::Event(decode_protocol(payload, remains)),
        "response_item" => RolloutPayload::Response(decode_response(payload)),
        _ => RolloutPayload::Other,
    };
    RolloutLine { timestamp, payload }
}

fn decode_head(payload: &Object<'_>) -> RolloutHead {
    let text = |fields: &Object<'_>, key: &str| Some(fields.text(key)?.resolve().into_owned());
    let git = payload.object("git").unwrap_or_default();
    // The `session_id` of a sub-agent is its parent's; `id` is always its own.
    let thread_id = text(payload, "id").or_else(|| text(payload, "session_id"));
    RolloutHead {
        thread_id: thread_id.unwrap_or_default(),
        cwd: text(payload, "cwd"),
        started_at: text(payload, "timestamp"),
        model_provider: text(payload, "model_provider"),
        cli_version: text(payload, "cli_version"),
        forked_from: text(payload, "forked_from_id"),
        git_commit: text(&git, "commit_hash"),
        git_branch: text(&git, "branch"),
        git_repository: text(&git, "repository_url"),
        ..RolloutHead::default()
    }
}

fn decode_response<'a>(payload: &Object<'a>) -> ResponseItem<'a> {
    let kind = payload.text("type");
    let call_id = payload.text("call_id").unwrap_or_default();
    // The `action` of a local shell call is an object; it is read like the arguments of a function call.
    let input = payload.members().find_map(|(key, value)| match key {
        "arguments" | "input" => value.text(),
        "action" if value.is_object() => value.raw().map(Text::plain),
        _ => None,
    });
    let input = input.unwrap_or_default();
    match kind.as_ref().and_then(Text::simple).unwrap_or_default() {
        "message" if payload.has_text("role", "user") => {
            ResponseItem::UserText(Text::joined(payload.list(&["content"], decode_text_part), "\n"))
        }
        "function_call" | "custom_tool_call" => {
            ResponseItem::Call { call_id, name: payload.text("name").unwrap_or_default(), input }
        }
        "local_shell_call" => ResponseItem::Call { call_id, name: Text::plain("local_shell"), input },
        "function_call_output" | "custom_tool_call_output" => {
            let output = payload.first(&["output"], decode_call_output).unwrap_or_default();
            ResponseItem::Output { call_id, output }
        }
        _ => ResponseItem::Other,
    }
}

/// A string, or a list of texts.
fn decode_call_output(output: Value<'_>) -> Option<Text<'_>> {
    let Some(parts) = output.elements() else { return output.text() };
    output.raw()?;
    Some(Text::joined(parts.filter_map(decode_text_part), ""))
}
