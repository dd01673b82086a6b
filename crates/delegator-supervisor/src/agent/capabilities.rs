//! What an agent can do. Inputs that an agent cannot honour are refused, never ignored.

use delegator_domain::agents::AgentProtocol;
use delegator_domain::task::Mode;

use super::{codex, plain};

/// What agents of a protocol can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// It has threads, which a later task can resume.
    pub threads: bool,
    /// It enforces the mode of a task with a sandbox of its own.
    pub sandbox: bool,
    /// When it takes messages.
    pub steer: Steering,
    /// The inputs that it cannot honour.
    pub unsupported_inputs: &'static [AgentInput],
}

/// When an agent takes messages while its task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steering {
    /// During a turn and as the next turn.
    Native,
    /// The same, by an extension of its protocol.
    Extension,
    /// Only as the next turn.
    NextTurn,
    /// Never.
    None,
}

/// An input of a task that not every agent can honour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentInput {
    Model,
    Profile,
    ReasoningEffort,
    Images,
    OutputSchema,
    /// Restricts the variables of the agent's commands; only the agent can do that.
    EnvPolicy,
}

impl AgentInput {
    /// The name of the input in requests.
    pub fn name(self) -> &'static str {
        match self {
            AgentInput::Model => "model",
            AgentInput::Profile => "profile",
            AgentInput::ReasoningEffort => "reasoning_effort",
            AgentInput::Images => "images",
            AgentInput::OutputSchema => "output_schema",
            AgentInput::EnvPolicy => "env_policy",
        }
    }
}

impl Capabilities {
    /// Whether a task may run in this mode: the agent enforces it, there is nothing to enforce, or the user waived it.
    pub fn permits(self, mode: Mode, unsandboxed: bool) -> bool {
        self.sandbox || unsandboxed || mode == Mode::DangerFullAccess
    }

    pub fn of(protocol: AgentProtocol) -> Capabilities {
        match protocol {
            AgentProtocol::CodexExec => codex::CAPABILITIES,
            AgentProtocol::Plain => plain::CAPABILITIES,
        }
    }
}
