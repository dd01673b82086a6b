//! Finds the programs of the agents of a task, in order of preference.

use std::path::Path;

use delegator_domain::agents::{ConfiguredAgent, DEFAULT_AGENT};
use delegator_engine::{
    AgentChoice, Engine, HealthStatus, SkippedAgent, check_sign_in, find_agent, locate_agent,
};

use crate::commands::Context;
use crate::commands::context::variables;
use crate::error::AppError;

/// The agent of a task that names none: the one that the user has chosen, or else Codex or, if its program is
/// not installed, the first other agent that is installed and not known to be signed out.
pub fn default_agent<'a>(context: &Context<'a>, directories: &[&Path]) -> &'a str {
    if let Some(chosen) = &context.config.settings.default_agent {
        return chosen;
    }
    let environment = variables(context);
    let locate = |name: &str| {
        let configured = context.config.agent(name)?;
        let agent = find_agent(&configured, directories, &environment).ok()?;
        Some((configured, agent))
    };
    let is_usable = |name: &&str| {
        let sign_in =
            locate(name).map(|(agent, found)| check_sign_in(&found, &agent.variables, &environment));
        sign_in.is_some_and(|found| found.is_none_or(|found| found.status != HealthStatus::Problem))
    };
    let other = match locate(DEFAULT_AGENT) {
        Some(_) => None,
        None => context.config.agent_names().into_iter().find(is_usable),
    };
    other.unwrap_or(DEFAULT_AGENT)
}

/// The names of the agents whose programs are installed. No program is run.
pub fn installed_agents(context: &Context<'_>) -> Vec<String> {
    let environment = variables(context);
    let is_installed = |name: &&str| {
        let configured = context.config.agent(name);
        configured.is_some_and(|agent| find_agent(&agent, &[], &environment).is_ok())
    };
    context.config.agent_names().into_iter().filter(is_installed).map(str::to_owned).collect()
}

/// The agents whose programs were found, and the others that are before one of them. An error if none was
/// found. `directories` are those in which the task works.
pub fn locate_agents(
    context: &Context<'_>,
    engine: &Engine,
    configured: Vec<ConfiguredAgent>,
    directories: &[&Path],
) -> Result<(Vec<AgentChoice>, Vec<SkippedAgent>), AppError> {
    let environment = variables(context);
    let (mut found, mut skipped, mut first_error) = (Vec::new(), Vec::new(), None);
    for agent in configured {
        match locate_agent(engine, &agent, directories, &environment) {
            Ok(located) => found.push(AgentChoice { agent: located, passed_variables: agent.variables }),
            Err(error) => {
                if found.is_empty() {
                    skipped.push(SkippedAgent { agent: agent.name, reason: error.to_string() });
                }
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if found.is_empty() => Err(error.into()),
        _ => Ok((found, skipped)),
    }
}
