//! Selects the agent of a task by its name.

use delegator_config::Config;
use delegator_domain::agents::{BUILT_IN_AGENT, ConfiguredAgent};

use crate::error::{ErrorCode, Problem, suggest_nearest};

/// The configured agent of this name; without a name, the built-in one.
pub fn select_agent(config: &Config, name: Option<&str>) -> Result<ConfiguredAgent, Problem> {
    let name = name.unwrap_or(BUILT_IN_AGENT);
    config.agent(name).ok_or_else(|| {
        let known = config.agent_names();
        let message = format!("is not the name of an agent; there are {}", known.join(", "));
        Problem::new(ErrorCode::InvalidValue, "agent", message)
            .value(name.into())
            .suggest(Some(suggest_nearest(name, known.into_iter())))
    })
}
