//! What is known of an agent before it runs. Data: one table per protocol and, for the Agent Client Protocol,
//! per agent.

use super::capabilities::{AgentInput, Capabilities, MessageSupport, UsageScope};
use super::state_dir::StateDir;
use crate::program::ProgramBehind;

#[derive(Debug)]
pub(super) struct Profile {
    pub(super) capabilities: Capabilities,
    /// The version that everything was measured with; empty if none was.
    pub(super) tested_version: &'static str,
    pub(super) program: ProgramBehind,
    /// Variables of the submitter that it gets in addition to those of every agent: keys, endpoints,
    /// directories.
    pub(super) own_variables: &'static [&'static str],
    pub(super) set_variables: &'static [(&'static str, &'static str)],
    pub(super) state: &'static [StateDir],
    pub(super) sign_in_command: Option<&'static str>,
}

/// Any program from the user's configuration.
///
/// It gets the task on standard input, which is then closed, and no arguments of ours. Its standard output is
/// its message, and its exit code decides whether it succeeded. It has no threads and no sandbox, and does
/// not report tokens, commands or files.
pub(super) const PLAIN: Profile = Profile {
    capabilities: Capabilities {
        threads: false,
        sandbox: false,
        messages: MessageSupport::None,
        usage: UsageScope::None,
        cost: false,
        plan: false,
        exit_codes: false,
        unsupported_inputs: &AgentInput::ALL,
    },
    tested_version: "",
    program: ProgramBehind::None,
    own_variables: &[],
    set_variables: &[],
    state: &[],
    sign_in_command: None,
};

/// The idle dialect: a program from the user's configuration that reads messages as JSON lines, prints events
/// as JSON lines and reports when it is idle.
///
/// The task is its first message. Its input stays open until it is idle and no further message has come. Its
/// tool calls are answered by the user or by a configured command. It gets no arguments of ours, has no
/// threads and no sandbox, and does not report tokens.
pub(super) const IDLE_JSONL: Profile = Profile {
    capabilities: Capabilities { messages: MessageSupport::NextTurn, ..PLAIN.capabilities },
    ..PLAIN
};
