//! Selects the agent of a task by its name.

use delegator_config::Config;
use delegator_domain::agents::ConfiguredAgent;

use crate::error::{ErrorCode, Problem, suggest_nearest};

/// The agent of this name.
pub fn select_agent(config: &Config, name: &str) -> Result<ConfiguredAgent, Problem> {
    config.agent(name).ok_or_else(|| {
        let known = config.agent_names();
        let message = match known.as_slice() {
            [only] => format!("is not the name of an agent; the only one is {only}"),
            several => format!("is not the name of an agent; there are {}", several.join(", ")),
        };
        Problem::new(ErrorCode::InvalidValue, "agent", message)
            .value(name.into())
            .suggest(Some(suggest_nearest(name, known.into_iter())))
    })
}
