//! Decodes `error` values. Codex exec events carry a string or an object with a `message`; MCP servers carry any JSON
//! value.

use crate::json::{Text, Value};

/// The string, or the `message` of the object.
pub(super) fn message(error: Value<'_>) -> Option<Text<'_>> {
    error.text().or_else(|| error.object()?.text("message"))
}

/// The message, or the whole value.
pub(super) fn message_or_whole(error: Value<'_>) -> Option<Text<'_>> {
    message(error).or_else(|| error.text_or_json())
}
