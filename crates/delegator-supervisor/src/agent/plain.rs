//! The plain protocol: any program from the user's configuration.
//!
//! It gets the task on standard input, which is then closed, and no arguments of ours. Its standard output is its message, and
//! its exit code decides whether it succeeded. It has no threads and no sandbox, and does not report tokens, commands or
//! files.

use super::capabilities::{AgentInput, Capabilities, MessageSupport, UsageScope};

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    threads: false,
    sandbox: false,
    messages: MessageSupport::None,
    usage: UsageScope::None,
    cost: false,
    plan: false,
    exit_codes: false,
    unsupported_inputs: &[
        AgentInput::Model,
        AgentInput::Profile,
        AgentInput::ReasoningEffort,
        AgentInput::Images,
        AgentInput::OutputSchema,
        AgentInput::Ask,
        AgentInput::EnvPolicy,
        AgentInput::Salvage,
    ],
};
