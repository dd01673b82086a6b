//! One table per agent.

mod claude_acp;
mod cline;
mod codex_acp;
mod copilot;
mod gemini;
mod generic;
mod goose;
mod kimi;
mod opencode;
mod qwen;

use super::profile::Profile;
use crate::conversation::AcpSetting;

const PROFILES: [&Profile; 9] = [
    &gemini::PROFILE,
    &opencode::PROFILE,
    &goose::PROFILE,
    &qwen::PROFILE,
    &copilot::PROFILE,
    &kimi::PROFILE,
    &cline::PROFILE,
    &claude_acp::PROFILE,
    &codex_acp::PROFILE,
];

/// The table of the agent of this name. An agent of the user's configuration has none of its own.
pub(in crate::agent) fn profile(name: &str) -> &'static Profile {
    PROFILES.into_iter().find(|profile| profile.name == name).unwrap_or(&generic::PROFILE)
}

/// A mode that is left out if the agent does not offer it: something else enforces the mode of the task.
const fn mode(id: &'static str) -> AcpSetting {
    AcpSetting::Mode { id, is_required: false }
}

#[cfg(test)]
mod tests {
    use delegator_domain::agents::{AgentProtocol, BUILT_IN_AGENTS};

    use super::*;

    #[test]
    fn every_built_in_agent_of_the_protocol_has_a_table() {
        let is_acp = |protocol| protocol == AgentProtocol::Acp;
        let built_in: Vec<&str> =
            BUILT_IN_AGENTS.iter().filter(|agent| is_acp(agent.protocol)).map(|agent| agent.name).collect();
        assert_eq!(PROFILES.map(|profile| profile.name).as_slice(), built_in);
        assert_eq!(profile("my-agent").name, generic::PROFILE.name);
    }
}
