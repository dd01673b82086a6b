//! Finds the programs of the agents of a task, in order of preference.

use std::path::Path;

use delegator_domain::agents::ConfiguredAgent;
use delegator_engine::{AgentChoice, Engine, SkippedAgent};

use crate::commands::Context;
use crate::commands::local::tasks::variables;
use crate::error::AppError;

/// The agents whose programs were found, and the others that are before one of them. An error if none was found.
pub fn locate_agents(
    context: &Context<'_>,
    engine: &Engine,
    configured: Vec<ConfiguredAgent>,
    working_dir: &Path,
) -> Result<(Vec<AgentChoice>, Vec<SkippedAgent>), AppError> {
    let environment = variables(context);
    let (mut found, mut skipped, mut first_error) = (Vec::new(), Vec::new(), None);
    for agent in configured {
        match engine.locate_agent(&agent, working_dir, &environment) {
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
