//! Decodes the lines of session files (rollouts), which Codex writes under its home directory.

use super::protocol::decode_protocol;
use super::turn_item::read_texts;
use super::{Nested, Remains, text_into};
use crate::json::{Cursor, Scan, Text};
use crate::protocol::{ResponseItem, RolloutLine, RolloutPayload, SessionMeta};

/// Whether `kind` is a known line type of session files. It identifies such a line when it has no timestamp.
pub(super) fn is_line_type(kind: &Text<'_>) -> bool {
    let names = ["session_meta", "turn_context", "event_msg", "response_item", "compacted"];
    kind.simple().is_some_and(|kind| names.contains(&kind))
}

pub(super) fn decode_rollout<'a>(
    timestamp: Option<Text<'a>>,
    kind: Text<'a>,
    payload: Nested<'a>,
    remains: Option<Remains<'a>>,
) -> RolloutLine<'a> {
    let payload = match kind.simple().unwrap_or_default() {
        "session_meta" => RolloutPayload::SessionMeta(Box::new(decode_meta(payload))),
        "turn_context" => decode_turn_context(payload),
        "event_msg" => RolloutPayload::Event(decode_protocol(payload, remains)),
        "response_item" => RolloutPayload::Response(decode_response(payload)),
        _ => RolloutPayload::Other { kind },
    };
    RolloutLine { timestamp, payload }
}

// Errors below come from truncated lines; the fields read before the end count.

fn decode_meta<'a>(payload: Nested<'a>) -> SessionMeta<'a> {
    let mut meta = SessionMeta::default();
    let (mut id, mut session_id) = (None, None);
    let _ = Cursor::new(payload.0).object(|cursor, key| match key.simple().unwrap_or_default() {
        "id" => text_into(cursor, &mut id),
        "session_id" => text_into(cursor, &mut session_id),
        "timestamp" => text_into(cursor, &mut meta.timestamp),
        "cwd" => text_into(cursor, &mut meta.cwd),
        "originator" => text_into(cursor, &mut meta.originator),
        "cli_version" => text_into(cursor, &mut meta.cli_version),
        "model_provider" => text_into(cursor, &mut meta.model_provider),
        "forked_from_id" => text_into(cursor, &mut meta.forked_from_id),
        "parent_thread_id" => text_into(cursor, &mut meta.parent_thread_id),
        "git" if cursor.peek() == Some(b'{') => read_git(cursor, &mut meta),
        _ => cursor.skip(),
    });
    // The `session_id` of a sub-agent is its parent's; `id` is always its own.
    meta.id = id.or(session_id).unwrap_or_default();
    meta
}

fn read_git<'a>(cursor: &mut Cursor<'a>, meta: &mut SessionMeta<'a>) -> Scan<()> {
    cursor.object(|cursor, key| match key.simple().unwrap_or_default() {
        "commit_hash" => text_into(cursor, &mut meta.git_commit),
        "branch" => text_into(cursor, &mut meta.git_branch),
        "repository_url" => text_into(cursor, &mut meta.git_repository),
        _ => cursor.skip(),
    })
}

fn decode_turn_context<'a>(payload: Nested<'a>) -> RolloutPayload<'a> {
    let (mut model, mut cwd) = (None, None);
    let _ = Cursor::new(payload.0).object(|cursor, key| match key.simple().unwrap_or_default() {
        "model" => text_into(cursor, &mut model),
        "cwd" => text_into(cursor, &mut cwd),
        _ => cursor.skip(),
    });
    RolloutPayload::TurnContext { model, cwd }
}

fn decode_response<'a>(payload: Nested<'a>) -> ResponseItem<'a> {
    let (mut kind, mut role, mut call_id, mut name, mut input, mut output) =
        (None, None, None, None, None, None);
    let mut texts = Vec::new();
    let _ = Cursor::new(payload.0).object(|cursor, key| match key.simple().unwrap_or_default() {
        "type" => text_into(cursor, &mut kind),
        "role" => text_into(cursor, &mut role),
        "call_id" => text_into(cursor, &mut call_id),
        "name" => text_into(cursor, &mut name),
        "arguments" | "input" => text_into(cursor, &mut input),
        // The `action` of a local shell call is an object; it is read like the arguments of a function call.
        "action" if cursor.peek() == Some(b'{') => {
            let action = Some(Text::plain(cursor.raw()?));
            super::first(&mut input, action);
            Ok(())
        }
        "output" if cursor.peek() == Some(b'[') => {
            let mut parts = Vec::new();
            read_texts(cursor, &mut parts)?;
            let parts: Vec<_> = parts.iter().map(|part| part.resolve().into_owned()).collect();
            super::first(&mut output, Some(Text::owned(parts.concat())));
            Ok(())
        }
        "output" => text_into(cursor, &mut output),
        "content" if texts.is_empty() && cursor.peek() == Some(b'[') => read_texts(cursor, &mut texts),
        _ => cursor.skip(),
    });
    let is = |text: &Option<Text<'_>>, wanted: &str| text.as_ref().is_some_and(|text| *text == *wanted);
    match kind.as_ref().and_then(Text::simple).unwrap_or_default() {
        "message" if is(&role, "user") => {
            let texts: Vec<_> = texts.iter().map(Text::resolve).collect();
            ResponseItem::UserText(Text::owned(texts.join("\n")))
        }
        "function_call" | "custom_tool_call" => ResponseItem::Call {
            call_id: call_id.unwrap_or_default(),
            name: name.unwrap_or_default(),
            input: input.unwrap_or_default(),
        },
        "local_shell_call" => ResponseItem::Call {
            call_id: call_id.unwrap_or_default(),
            name: Text::plain("local_shell"),
            input: input.unwrap_or_default(),
        },
        "function_call_output" | "custom_tool_call_output" => {
            ResponseItem::Output { call_id: call_id.unwrap_or_default(), output: output.unwrap_or_default() }
        }
        _ => ResponseItem::Other,
    }
}
