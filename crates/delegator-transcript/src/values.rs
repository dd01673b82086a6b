//! Values that several formats have in common: errors, token counts, plans, results of MCP tools and states
//! of sub-agents.

use crate::event::{AgentError, ChangeKind, CollabToolCall, ErrorCode, FileChange, McpToolCall, Todo, Usage};
use crate::file_diff;
use crate::json::text::snake_case;
use crate::json::{Ending, Object, Text, Value, write};

/// The string, or the `message` of the object.
pub(crate) fn error_message(error: Value<'_>) -> Option<Text<'_>> {
    error.text().or_else(|| error.object()?.text("message"))
}

pub(crate) fn agent_error(error: Value<'_>) -> AgentError<'_> {
    let code = error.object().as_ref().and_then(codex_error_code);
    AgentError { message: error_message(error).unwrap_or_default(), code }
}

/// The error of a failed turn; absent unless it is an object.
pub(crate) fn error_object(error: Value<'_>) -> Option<AgentError<'_>> {
    error.is_object().then(|| agent_error(error))
}

/// `"codex_error_info":"usage_limit_exceeded"` or `{"http_connection_failed":{"http_status_code":403}}`. The
/// app server and its adapters write the same in camel case.
pub(crate) fn codex_error_code(error: &Object<'_>) -> Option<ErrorCode> {
    let info = error.first(&["codex_error_info", "codexErrorInfo"], Some)?;
    let (name, facts) = match info.text() {
        Some(name) => (name, None),
        None => {
            let (name, facts) = info.object()?.members().next()?;
            (Text::json(name), facts.object())
        }
    };
    let status = facts.and_then(|facts| facts.first(&["http_status_code", "httpStatusCode"], Value::integer));
    let http_status = status.and_then(|status| u16::try_from(status).ok());
    Some(match snake_case(&name.resolve()).as_str() {
        "usage_limit_exceeded" => ErrorCode::UsageLimit,
        "rate_limit_exceeded" => ErrorCode::RateLimit,
        "server_overloaded" => ErrorCode::Overloaded,
        "unauthorized" => ErrorCode::Unauthorized,
        "model_not_found" => ErrorCode::ModelNotFound,
        "sandbox_error" => ErrorCode::Sandbox,
        "http_connection_failed"
        | "response_stream_connection_failed"
        | "response_stream_disconnected"
        | "response_too_many_failed_attempts" => ErrorCode::Connection { http_status },
        _ => return None,
    })
}

/// The token counts in an object; `None` if the value is not a complete object.
pub(crate) fn usage_object(value: Value<'_>) -> Option<Usage> {
    let counts = value.object().filter(|counts| counts.ending == Ending::Complete)?;
    Some(read_usage(&counts).unwrap_or_default())
}

/// Codex's token counts among other fields; `None` if there are none. The app server writes them in camel
/// case.
pub(crate) fn read_usage(fields: &Object<'_>) -> Option<Usage> {
    let count = |snake: &str, camel: &str| fields.first(&[snake, camel], Value::integer);
    let input = count("input_tokens", "inputTokens");
    let cached = count("cached_input_tokens", "cachedInputTokens");
    let cache_write = count("cache_write_input_tokens", "cacheWriteInputTokens");
    let output = count("output_tokens", "outputTokens");
    let reasoning = count("reasoning_output_tokens", "reasoningOutputTokens");
    input.or(cached).or(cache_write).or(output).or(reasoning)?;
    Some(Usage {
        input_tokens: input.unwrap_or_default(),
        cached_input_tokens: cached.unwrap_or_default(),
        cache_write_input_tokens: cache_write,
        output_tokens: output.unwrap_or_default(),
        reasoning_output_tokens: reasoning,
    })
}

/// The steps of a plan: `[{"text":…,"completed":…}]`, in other formats `[{"step":…,"status":…}]`.
pub(crate) fn read_todos<'a>(fields: &Object<'a>, key: &str, text_key: &str) -> Vec<Todo<'a>> {
    fields.list(&[key], |todo| read_todo(todo, &[text_key]))
}

/// A step of a plan, whose text is under one of these keys.
pub(crate) fn read_todo<'a>(todo: Value<'a>, text_keys: &[&str]) -> Option<Todo<'a>> {
    let todo = todo.object()?;
    let completed = todo.members().find_map(|(key, value)| match key {
        "completed" => value.boolean(),
        "status" => value.text().map(|status| matches!(status.simple(), Some("completed" | "done"))),
        _ => None,
    });
    Some(Todo { text: todo.first(text_keys, Value::text)?, completed: completed.unwrap_or(false) })
}

/// The answers that a question suggests, each with a description.
pub(crate) fn read_suggestions<'a>(question: &Object<'a>) -> Vec<(Text<'a>, Option<Text<'a>>)> {
    question.list(&["options"], |option| {
        let option = option.object()?;
        Some((option.text("label")?, option.text("description")))
    })
}

/// Spells an MCP result as Codex exec events do: `structured_content` always present, no `isError` (the
/// status has it). A value without any field of an MCP result is returned unchanged.
pub(crate) fn codex_exec_result(raw: &str) -> String {
    let result = Object::read(raw);
    let content = result.raw("content");
    let structured = result.first(&["structuredContent", "structured_content"], Value::raw);
    let is_mcp = |key: &str| {
        matches!(
            key,
            "content" | "_meta" | "structuredContent" | "structured_content" | "isError" | "is_error"
        )
    };
    let is_foreign =
        content.is_none() && structured.is_none() && !result.members().all(|(key, _)| is_mcp(key));
    if !raw.starts_with('{') || result.ending != Ending::Complete || is_foreign {
        return raw.to_owned();
    }
    write::object_text(|object| {
        object.raw("content", content.unwrap_or("[]"));
        if let Some(meta) = result.raw("_meta") {
            object.raw("_meta", meta);
        }
        object.raw("structured_content", structured.unwrap_or("null"));
    })
}

/// A call of a tool of an MCP server, without result and error.
pub(crate) fn mcp_call<'a>(fields: &Object<'a>) -> McpToolCall<'a> {
    McpToolCall {
        server: fields.text("server").unwrap_or_default(),
        tool: fields.text("tool").unwrap_or_default(),
        arguments: fields.raw("arguments").map(Text::plain),
        ..McpToolCall::default()
    }
}

/// A call with the result and the error as session files and the app server write them.
pub(crate) fn finished_mcp_call<'a>(fields: &Object<'a>) -> McpToolCall<'a> {
    McpToolCall {
        result: fields.raw("result").map(|raw| Text::owned(codex_exec_result(raw))),
        error: fields.first(&["error"], |error| error.object()?.text("message")),
        ..mcp_call(fields)
    }
}

/// A call that manages sub-agents, in snake or camel case.
pub(crate) fn collab_call<'a>(fields: &Object<'a>, agents_states: Option<Text<'a>>) -> CollabToolCall<'a> {
    CollabToolCall {
        tool: Text::owned(snake_case(&fields.text("tool").unwrap_or_default().resolve())),
        sender_thread_id: fields.first(&["sender_thread_id", "senderThreadId"], Value::text),
        receiver_thread_ids: fields.first(&["receiver_thread_ids", "receiverThreadIds"], Value::raw),
        prompt: fields.text("prompt"),
        agents_states,
    }
}

/// The states of sub-agents as Codex exec events have them. Session files write `{"id":"pending_init"}` and
/// `{"id":{"completed":"text"}}`, the app server `{"id":{"status":"pendingInit","message":…}}`.
pub(crate) fn agents_states<'a>(fields: &Object<'a>) -> Option<Text<'a>> {
    let complete = |states: Value<'a>| states.object().filter(|states| states.ending == Ending::Complete);
    let states = fields.first(&["agents_states", "agentsStates"], complete)?;
    Some(Text::owned(write::object_text(|object| {
        for (thread, state) in states.members() {
            let fields = state.object().unwrap_or_default();
            let (status, message) = match (fields.text("status"), fields.members().last()) {
                (Some(status), _) => (Text::owned(snake_case(&status.resolve())), fields.text("message")),
                (None, Some((status, message))) => (Text::json(status), message.text()),
                (None, None) => (state.text().unwrap_or_default(), None),
            };
            object.object(&Text::json(thread).resolve(), |state| {
                state.text("status", &status);
                match message {
                    Some(message) => state.text("message", &message),
                    None => state.raw("message", "null"),
                }
            });
        }
    })))
}

/// `changes`: `[{"path":…,"kind":…}]`, where the kind may be an object with a `type`; in session files
/// `{"path":{"add":…}}`, in newer ones `{"path":{"type":"add",…}}`.
pub(crate) fn file_changes<'a>(fields: &Object<'a>) -> Vec<FileChange<'a>> {
    let changes = fields.first(&["changes"], |changes| {
        let list: Vec<_> = match changes.elements() {
            Some(elements) => elements.filter_map(listed_change).collect(),
            None => changes.object()?.members().filter_map(mapped_change).collect(),
        };
        Some((list, changes.is_object())).filter(|(list, _)| !list.is_empty())
    });
    let (mut changes, is_map) = changes.unwrap_or_default();
    // A map has no order; Codex shows changes sorted by path.
    if is_map {
        changes.sort_by(|a, b| a.path.resolve().cmp(&b.path.resolve()));
    }
    changes
}

fn listed_change(change: Value<'_>) -> Option<FileChange<'_>> {
    let change = change.object()?;
    let kind = change.first(&["kind"], |kind| kind.text().or_else(|| kind.object()?.text("type")));
    let kind = ChangeKind::read(kind.as_ref().and_then(Text::simple).unwrap_or_default());
    let diff = change.text("diff").map(|diff| file_diff::of_text(kind, diff)).unwrap_or_default();
    Some(FileChange { path: change.text("path")?, kind, diff })
}

fn mapped_change<'a>((path, change): (&'a str, Value<'a>)) -> Option<FileChange<'a>> {
    let change = change.object().filter(|change| change.ending == Ending::Complete)?;
    let tagged = change.text("type").map(|name| ChangeKind::read(name.simple().unwrap_or_default()));
    let named = || {
        let kinds = ["add", "delete", "update", "Add", "Delete", "Update"];
        change.members().find(|(key, _)| kinds.contains(key)).map(|(key, _)| ChangeKind::read(key))
    };
    let kind = tagged.or_else(named).unwrap_or(ChangeKind::Update);
    Some(FileChange::of_path(Text::json(path), kind))
}
