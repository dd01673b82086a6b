//! The idle dialect: what an agent reads.

use serde::Serialize;

#[derive(Serialize)]
struct ToolResult<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    content: &'a str,
}

/// A message to the agent, without a line end. The text may have line ends of its own: they are escaped.
pub fn message(text: &str) -> Vec<u8> {
    // Writing texts to memory does not fail.
    serde_json::to_vec(&ToolResult { kind: "tool_result", content: text }).unwrap_or_default()
}
