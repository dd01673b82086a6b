//! Decodes the lines of session files (rollouts), which Codex writes under its home directory.

use super::protocol::{decode_protocol, decode_text_part};
use crate::json::{Object, Text, Value};
use crate::longline::LineRemains;
use crate::protocol::{ResponseItem, RolloutHead, RolloutLine, RolloutPayload};

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
            let output = payload.first(&["output"], decode_output).unwrap_or_default();
            ResponseItem::Output { call_id, output }
        }
        _ => ResponseItem::Other,
    }
}

/// A string, or a list of texts.
fn decode_output(output: Value<'_>) -> Option<Text<'_>> {
    let Some(parts) = output.elements() else { return output.text() };
    output.raw()?;
    Some(Text::joined(parts.filter_map(decode_text_part), ""))
}
