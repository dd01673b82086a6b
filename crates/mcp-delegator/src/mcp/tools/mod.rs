//! Commands as MCP tools: which tools are served, and one tool call from its arguments to its result.

pub mod call_handler;
pub mod confirmation;
mod confirmation_text;
pub mod progress;
pub mod progress_scale;
mod questions;
pub mod server_state;
pub mod toolbox;
pub mod waiting;
