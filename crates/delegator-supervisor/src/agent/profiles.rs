//! The table of each agent.

use delegator_domain::agents::{AgentKind, AgentProtocol};

use super::acp::acp_profile;
use super::capabilities::Capabilities;
use super::profile::{IDLE_JSONL, PLAIN, Profile};
use super::{claude, codex};

pub(super) fn profile(agent: AgentKind<'_>) -> &'static Profile {
    match agent.protocol {
        AgentProtocol::CodexExec => &codex::PROFILE,
        AgentProtocol::CodexAppServer => &codex::APP_SERVER_PROFILE,
        AgentProtocol::Plain => &PLAIN,
        AgentProtocol::IdleJsonl => &IDLE_JSONL,
        AgentProtocol::ClaudeStream => &claude::PROFILE,
        AgentProtocol::Acp => &acp_profile(agent.name).profile,
    }
}

impl Capabilities {
    pub fn of(agent: AgentKind<'_>) -> Capabilities {
        profile(agent).capabilities
    }
}
