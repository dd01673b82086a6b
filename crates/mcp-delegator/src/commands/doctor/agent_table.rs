//! What is known of each agent: whether it is installed and signed in, and what it can do.

use crate::commands::prelude::*;

use delegator_domain::agents::{AgentKind, ConfiguredAgent};
use delegator_engine::{Capabilities, MessageSupport, UsageScope};

/// One agent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AgentRow {
    pub name: String,
    pub protocol: &'static str,
    pub is_installed: bool,
    /// Tasks that name no agent run on it.
    pub is_default: bool,
    /// Absent if it is not installed or does not report it.
    pub version: Option<String>,
    /// Absent if that cannot be known without the network.
    pub is_signed_in: Option<bool>,
    /// Whether a task can run on it, as far as that is known.
    #[serde(skip)]
    pub is_usable: bool,
    #[serde(flatten)]
    pub abilities: Abilities,
}

/// What an agent can do.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Abilities {
    /// What enforces the mode of its tasks: `agent`, `enforced` (by us) or `none`.
    pub sandbox: &'static str,
    /// Whether a later task can continue its thread.
    pub is_resumable: bool,
    /// When it takes messages: `never`, `next_turn` or `running_turn`.
    pub messages: &'static str,
    /// What its token counts cover: `none`, `turn`, `last_call` or `thread`.
    pub usage: &'static str,
    pub has_cost: bool,
    pub has_plan: bool,
    pub has_exit_codes: bool,
}

impl Abilities {
    pub fn of(agent: AgentKind<'_>, unsandboxed: bool) -> Abilities {
        let capabilities = Capabilities::of(agent);
        Abilities {
            sandbox: capabilities.sandbox_of(Mode::default(), unsandboxed).name(),
            is_resumable: capabilities.threads,
            messages: match capabilities.messages {
                MessageSupport::None => "never",
                MessageSupport::NextTurn => "next_turn",
                MessageSupport::RunningTurn => "running_turn",
            },
            usage: match capabilities.usage {
                UsageScope::None => "none",
                UsageScope::Turn => "turn",
                UsageScope::LastCall => "last_call",
                UsageScope::Thread => "thread",
            },
            has_cost: capabilities.cost,
            has_plan: capabilities.plan,
            has_exit_codes: capabilities.exit_codes,
        }
    }
}

impl AgentRow {
    pub fn missing(agent: &ConfiguredAgent) -> AgentRow {
        AgentRow {
            name: agent.name.clone(),
            protocol: agent.protocol.name(),
            is_installed: false,
            is_default: false,
            version: None,
            is_signed_in: None,
            is_usable: false,
            abilities: Abilities::of(agent.kind(), agent.unsandboxed),
        }
    }
}
