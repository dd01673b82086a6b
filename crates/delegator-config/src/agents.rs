//! The agents that tasks can name: the built-in ones and those of the user's configuration.

use std::time::Duration;

use delegator_domain::agents::{BUILT_IN_AGENTS, ConfiguredAgent, DEFAULT_AGENT, LIVE_AGENT, built_in_agent};

use crate::config::Config;

impl Config {
    /// The agent of this name. The configuration of a built-in agent may replace its protocol and its
    /// command.
    pub fn agent(&self, name: &str) -> Option<ConfiguredAgent> {
        let built_in = built_in_agent(name);
        let settings = self.settings.agents.get(name);
        let (program, args) = match (settings.map(|agent| agent.command.as_slice()), built_in) {
            _ if name == DEFAULT_AGENT => (self.settings.codex_bin.clone(), &[][..]),
            (Some([program, args @ ..]), _) => (program.into(), args),
            _ if name == LIVE_AGENT => (self.settings.codex_bin.clone(), &[][..]),
            (_, Some(built_in)) => (built_in.program.into(), &[][..]),
            (_, None) => return None,
        };
        let protocol = settings.map(|agent| agent.protocol).or(built_in.map(|agent| agent.protocol))?;
        Some(ConfiguredAgent {
            name: name.to_owned(),
            protocol,
            program,
            args: args.to_vec(),
            variables: settings.map(|agent| agent.env.clone()).unwrap_or_default(),
            unsandboxed: settings.is_some_and(|agent| agent.unsandboxed),
            state_dirs: settings.map(|agent| agent.state_dirs.clone()).unwrap_or_default(),
            linger: settings.map_or(Duration::ZERO, |agent| agent.linger),
            tool_command: settings.and_then(|agent| agent.tool_command.clone()).unwrap_or_default(),
        })
    }

    /// The names of all agents, the built-in ones first.
    pub fn agent_names(&self) -> Vec<&str> {
        let built_in = BUILT_IN_AGENTS.iter().map(|agent| agent.name);
        let configured = self.settings.agents.keys().map(String::as_str);
        built_in.chain(configured.filter(|name| built_in_agent(name).is_none())).collect()
    }
}
