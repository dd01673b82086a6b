//! What an agent can do. Inputs that an agent cannot honour are refused, never ignored.

use delegator_domain::message::Delivery;
use delegator_domain::named_enum;
use delegator_domain::task::{EnvPolicy, Mode, RunSettings, SandboxKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// It has threads, which a later task can resume.
    pub threads: bool,
    /// It enforces the mode of a task with a sandbox of its own.
    pub sandbox: bool,
    pub messages: MessageSupport,
    /// What the token counts that it reports are counts of.
    pub usage: UsageScope,
    pub cost: bool,
    pub plan: bool,
    /// It reports the exit codes of its commands.
    pub exit_codes: bool,
    pub unsupported_inputs: &'static [AgentInput],
}

/// What token counts are counts of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageScope {
    None,
    Turn,
    /// The last call of the model in a turn: less than the turn took.
    LastCall,
    /// The thread, earlier tasks included.
    Thread,
}

/// Which messages an agent takes while its task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageSupport {
    None,
    /// After its turn, as the next one.
    NextTurn,
    /// Also into the running turn.
    RunningTurn,
}

impl MessageSupport {
    pub fn takes(self, delivery: Delivery) -> bool {
        match self {
            MessageSupport::None => false,
            MessageSupport::NextTurn => delivery == Delivery::Next,
            MessageSupport::RunningTurn => true,
        }
    }
}

named_enum! {
    /// An input of a task that not every agent can honour.
    pub enum AgentInput {
        Model = "model",
        Profile = "profile",
        ReasoningEffort = "reasoning_effort",
        Images = "images",
        OutputSchema = "output_schema",
        /// It never requests permission.
        Ask = "ask",
        /// Restricts the variables of the agent's commands; only the agent can do that.
        EnvPolicy = "env_policy",
        /// It takes no message during a turn, and its threads cannot be resumed.
        Salvage = "salvage",
    }
}

impl AgentInput {
    /// Whether these settings set it; an output schema and the salvage turn are not among them.
    pub fn is_set_in(self, run: &RunSettings) -> bool {
        match self {
            AgentInput::Model => run.model.is_some(),
            AgentInput::Profile => run.profile.is_some(),
            AgentInput::ReasoningEffort => run.reasoning_effort.is_some(),
            AgentInput::Images => !run.images.is_empty(),
            AgentInput::Ask => run.ask,
            AgentInput::EnvPolicy => matches!(run.env_policy, EnvPolicy::AllowList(_)),
            AgentInput::OutputSchema | AgentInput::Salvage => false,
        }
    }
}

impl Capabilities {
    /// What enforces the mode of a task: the agent itself if it can, else we, unless there is nothing to
    /// enforce or the user waived it.
    pub fn sandbox_of(self, mode: Mode, unsandboxed: bool) -> SandboxKind {
        match mode {
            Mode::DangerFullAccess => SandboxKind::None,
            _ if self.sandbox => SandboxKind::Agent,
            _ if unsandboxed => SandboxKind::None,
            _ => SandboxKind::Enforced,
        }
    }
}
