//! The MCP tasks extension: handles for `run` and `wait` that outlive the server.

pub mod handle_requests;
pub mod handles;
