//! `GET /session`: who the caller is, and the token that writes of a session must carry.

use crate::commands::prelude::*;
use crate::mcp::sign_in::{Caller, CallerSession};
use crate::mcp::tools::server_state::ToolCall;
use crate::spec::NoInputs;
use crate::spec::formats::Format;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct SessionData {
    /// read, answer or write
    scope: &'static str,
    /// The value of X-CSRF-Token; null for a caller with the bearer token, who needs none.
    csrf_token: Option<String>,
    /// When the session ends unless it is used; null for a caller with the bearer token.
    expires_at: Option<UtcTime>,
}

pub(super) const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Show("session"),
    toolset: Toolset::Hidden,
    config: ConfigUse::Unused,
    ..CommandSpec::read_only::<NoInputs, SessionData>(&["session"], "Show what the caller may do")
};

pub(super) fn call() -> ToolCall {
    ToolCall::new(&SPEC, Format::Json)
}

pub(super) fn output(caller: &Caller) -> CommandOutput {
    let expires = |own: &CallerSession| UtcTime::from_ms(own.session.expires_ms());
    CommandOutput::done(SessionData {
        scope: caller.scope.name(),
        csrf_token: caller.session.as_ref().map(|own| own.csrf_token.clone()),
        expires_at: caller.session.as_ref().map(expires),
    })
}

impl CommandData for SessionData {}
