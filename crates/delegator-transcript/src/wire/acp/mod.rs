//! The Agent Client Protocol, version 1: the messages that matter for running a task.
//!
//! [`AgentMessage`] is one line of the agent, [`ClientMessage`] one line that we sent, read back from a
//! stored stream. What an answer contains depends on the request: [`InitializeResult`], [`SessionResult`] and
//! [`PromptResult`] read it. The functions of [`outgoing`] write what we send.
//!
//! The protocol leaves much open, and agents use the same members differently. Where a fact has several
//! places (the output and exit code of a command, the name of a tool, token counts), all known places are
//! read here, so that the dialect and the conversation see one shape.

mod agent_message;
mod client_message;
mod error;
pub mod outgoing;
mod results;
mod tool_call;
mod usage;

pub use agent_message::{AgentMessage, Chunk, PermissionOption, PermissionRequest, SessionInfo, Update};
pub use client_message::{ClientMessage, ClientRequest};
pub use error::{code_of_text, names_usage_limit};
pub(crate) use error::{error_code, error_message};
pub use results::{
    ConfigOption, InitializeResult, OptionValue, PromptResult, SessionResult, StopReason, steering_refusal,
};
pub use tool_call::{CallStatus, ToolCall, ToolKind};

/// Sign in first.
pub const AUTHENTICATION_REQUIRED: i64 = -32000;
