//! The agents that tasks can name.

use delegator_domain::agents::{BUILT_IN_AGENT, BUILT_IN_PROTOCOL, ConfiguredAgent};

use crate::config::Config;

impl Config {
    /// The agent of this name.
    pub fn agent(&self, name: &str) -> Option<ConfiguredAgent> {
        (name == BUILT_IN_AGENT).then(|| ConfiguredAgent {
            name: name.to_owned(),
            protocol: BUILT_IN_PROTOCOL,
            program: self.settings.codex_bin.clone(),
            args: Vec::new(),
            variables: self.settings.agent_variables(name).to_vec(),
            unsandboxed: false,
        })
    }

    /// The names of all agents.
    pub fn agent_names(&self) -> Vec<&str> {
        vec![BUILT_IN_AGENT]
    }
}
