//! Selects the agent of a task by its name.

use delegator_config::Config;
use delegator_domain::agents::{ConfiguredAgent, DEFAULT_AGENT, LIVE_AGENT};

use crate::error::Problem;

/// The agent that runs for this name. The default agent takes no messages; its live form does.
pub fn running_agent(name: &str, is_live: bool) -> &str {
    if is_live && name == DEFAULT_AGENT { LIVE_AGENT } else { name }
}

pub fn select_agent(config: &Config, name: &str) -> Result<ConfiguredAgent, Problem> {
    config.agent(name).ok_or_else(|| {
        let known = config.agent_names();
        let message = match known.as_slice() {
            [only] => format!("is not the name of an agent; the only one is {only}"),
            several => format!("is not the name of an agent; there are {}", several.join(", ")),
        };
        Problem::invalid("agent", message).value(name.into()).choose_from(name, known.into_iter())
    })
}
