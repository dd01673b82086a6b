//! Decodes `error` values. Codex exec events carry a string or an object with a `message`; MCP servers carry any JSON
//! value.

use crate::event::{AgentError, ErrorCode};
use crate::json::{Object, Text, Value};

/// The string, or the `message` of the object.
pub(super) fn message(error: Value<'_>) -> Option<Text<'_>> {
    error.text().or_else(|| error.object()?.text("message"))
}

/// The error of a failed turn.
pub(super) fn agent_error(error: Value<'_>) -> AgentError<'_> {
    let code = error.object().as_ref().and_then(code);
    AgentError { message: message(error).unwrap_or_default(), code }
}

/// `"codex_error_info":"usage_limit_exceeded"` or `{"http_connection_failed":{"http_status_code":403}}`.
pub(super) fn code(error: &Object<'_>) -> Option<ErrorCode> {
    let info = error.first(&["codex_error_info"], Some)?;
    if let Some(name) = info.text() {
        return named_code(name.simple()?, None);
    }
    let (name, facts) = info.object()?.members().next()?;
    let status = facts.object().and_then(|facts| facts.first(&["http_status_code"], Value::integer));
    named_code(name, status.and_then(|status| u16::try_from(status).ok()))
}

pub(crate) fn named_code(name: &str, http_status: Option<u16>) -> Option<ErrorCode> {
    Some(match name {
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

/// The message, or the whole value.
pub(super) fn message_or_whole(error: Value<'_>) -> Option<Text<'_>> {
    message(error).or_else(|| error.text_or_json())
}
