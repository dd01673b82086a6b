//! The agents that tasks can name: the built-in one and those of the user's configuration.

use delegator_domain::agents::{BUILT_IN_AGENT, BUILT_IN_PROTOCOL, ConfiguredAgent};

use crate::config::Config;

impl Config {
    /// The agent of this name.
    pub fn agent(&self, name: &str) -> Option<ConfiguredAgent> {
        let settings = self.settings.agents.get(name);
        let (program, args) = match settings.map(|agent| agent.command.as_slice()) {
            _ if name == BUILT_IN_AGENT => (self.settings.codex_bin.clone(), &[][..]),
            Some([program, args @ ..]) => (program.into(), args),
            _ => return None,
        };
        Some(ConfiguredAgent {
            name: name.to_owned(),
            protocol: settings.map_or(BUILT_IN_PROTOCOL, |agent| agent.protocol),
            program,
            args: args.to_vec(),
            variables: settings.map(|agent| agent.env.clone()).unwrap_or_default(),
            unsandboxed: settings.is_some_and(|agent| agent.unsandboxed),
            state_dirs: settings.map(|agent| agent.state_dirs.clone()).unwrap_or_default(),
        })
    }

    /// The names of all agents, the built-in one first.
    pub fn agent_names(&self) -> Vec<&str> {
        let configured =
            self.settings.agents.keys().map(String::as_str).filter(|name| *name != BUILT_IN_AGENT);
        std::iter::once(BUILT_IN_AGENT).chain(configured).collect()
    }
}
