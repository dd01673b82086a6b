//! The rows of the document "Tool envelope".

mod acknowledgement;
mod compatibility;
mod envelope;
mod errors;
mod migration;
mod registry;
mod results;
mod schemas;
mod status;
mod typescript;
mod wait;

use serde_json::Value;

use crate::assertions::equals;
use crate::recorded::CLOUD;

crate::row::document! {
    "000",
    "Tool envelope",
    "The JSON answers of the fifteen MCP tools (JSON Schema Specification, MCP Delegator 3.6).",
    217 statements in
    envelope errors acknowledgement wait status results registry migration schemas typescript compatibility
}

/// A cloud tool answers in its own category.
#[track_caller]
fn cloud_answer(tool: &str, category: &str) -> &'static Value {
    let answer = &CLOUD[tool];
    equals(answer, "/tool", tool);
    equals(answer, "/tool_category", category);
    equals(answer, "/schema_id", format!("codex/v3.6/{category}/v1"));
    answer
}
