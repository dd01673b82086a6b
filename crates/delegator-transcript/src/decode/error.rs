//! Decodes `error` values. Codex exec events carry a string or an object with a `message`; MCP servers carry any JSON
//! value.

use crate::event::{AgentError, ErrorCode};
use crate::json::text::snake_case;
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

/// The error of a failed turn; absent unless it is an object.
pub(crate) fn error_object(error: Value<'_>) -> Option<AgentError<'_>> {
    error.is_object().then(|| agent_error(error))
}

/// `"codex_error_info":"usage_limit_exceeded"` or `{"http_connection_failed":{"http_status_code":403}}`. The app server
/// and its adapters write the same in camel case.
pub(crate) fn code(error: &Object<'_>) -> Option<ErrorCode> {
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

/// The message, or the whole value.
pub(super) fn message_or_whole(error: Value<'_>) -> Option<Text<'_>> {
    message(error).or_else(|| error.text_or_json())
}
