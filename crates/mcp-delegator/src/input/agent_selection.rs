//! Selects the agent of a task by its name.

use delegator_config::Config;
use delegator_domain::agents::{ConfiguredAgent, DEFAULT_AGENT, LIVE_AGENT};
use serde_json::Value;

use crate::error::{ErrorCode, Problem};

const MAX_AGENTS: usize = 4;

/// The names in the input `agent`: one, or several in order of preference.
pub fn agent_names<'a>(input: &'a Value, default_agent: &'a str) -> Result<Vec<&'a str>, Problem> {
    let problem = |message: &str| Problem::new(ErrorCode::InvalidValue, "agent", message);
    let is_live = input.get("live") == Some(&Value::Bool(true));
    let names = match input.get("agent") {
        None | Some(Value::Null) => vec![default_agent],
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => {
            let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
            names.ok_or_else(|| problem("must be a name or a list of names"))?
        }
        Some(_) => return Err(problem("must be a name or a list of names")),
    };
    let is_repeated = |(at, name): (usize, &&str)| names[..at].contains(name);
    match names.len() {
        0 => Err(problem("must not be an empty list")),
        count if count > MAX_AGENTS => Err(problem("names too many agents; at most 4 are allowed")),
        _ if names.iter().enumerate().any(is_repeated) => Err(problem("names an agent twice")),
        _ => Ok(names.into_iter().map(|name| running_agent(name, is_live)).collect()),
    }
}

/// The agent that runs for this name. The default agent takes no messages; its live form does.
pub fn running_agent(name: &str, is_live: bool) -> &str {
    if is_live && name == DEFAULT_AGENT { LIVE_AGENT } else { name }
}

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
            .choose_from(name, known.into_iter())
    })
}
