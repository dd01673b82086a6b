//! The idle dialect: what an agent reads.

use serde::Serialize;

#[derive(Serialize, Default)]
struct ToolResult<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// A message to the agent, without a line end. The text may have line ends of its own: they are escaped.
pub fn message(text: &str) -> Vec<u8> {
    line(&ToolResult { content: Some(text), ..ToolResult::default() })
}

/// The result of a tool call, without a line end. A call that failed has an error.
pub fn tool_result(call_id: &str, result: Result<&str, &str>) -> Vec<u8> {
    let (output, error) = (result.unwrap_or_default(), result.err());
    line(&ToolResult { call_id: Some(call_id), output: Some(output), error, ..ToolResult::default() })
}

fn line(result: &ToolResult<'_>) -> Vec<u8> {
    // Writing texts to memory does not fail.
    serde_json::to_vec(&ToolResult { kind: "tool_result", ..*result }).unwrap_or_default()
}
