//! The rows of the document "Tool envelope".

mod envelope;

crate::row::document! {
    "000",
    "Tool envelope",
    "The JSON answers of the fifteen MCP tools (JSON Schema Specification, MCP Delegator 3.6).",
    209 statements in
    envelope
}
