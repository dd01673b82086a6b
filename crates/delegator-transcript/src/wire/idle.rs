//! The idle dialect: what an agent reads.

use crate::json::write::line;

/// A message to the agent, without a line end. The text may have line ends of its own: they are escaped.
pub fn message(text: &str) -> Vec<u8> {
    line("tool_result", |line| line.plain("content", text))
}

/// The result of a tool call, without a line end. A call that failed has an error.
pub fn tool_result(call_id: &str, result: Result<&str, &str>) -> Vec<u8> {
    line("tool_result", |line| {
        line.plain("call_id", call_id);
        line.plain("output", result.unwrap_or_default());
        if let Err(error) = result {
            line.plain("error", error);
        }
    })
}
