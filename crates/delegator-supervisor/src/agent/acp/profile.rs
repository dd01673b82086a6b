//! What differs between agents of the Agent Client Protocol, and what follows from it.

use std::path::Path;

use crate::agent::health::{HealthCheck, HealthStatus};
use crate::agent::profile::Profile;
use crate::conversation::AcpSetting;
use crate::variables::{Variables, set_variable, variable};

/// One agent. Measured with the version in its table.
#[derive(Debug)]
pub(in crate::agent) struct AcpProfile {
    pub(in crate::agent) name: &'static str,
    pub(in crate::agent) profile: Profile,
    /// Make it speak the protocol.
    pub(in crate::agent) args: &'static [&'static str],
    /// Set in addition if permissions are requested of us: `ask`, or a mode that nothing else enforces.
    pub(super) asking_variables: &'static [(&'static str, &'static str)],
    pub(super) modes: Modes,
    pub(super) model: ModelInput,
    /// It ends its turn when a permission is refused.
    pub(super) refusal_ends_turn: bool,
    /// It does not exit when its input is closed.
    pub(super) ignores_end_of_input: bool,
    /// It replays the history of a loaded session after it has answered.
    pub(super) replays_late: bool,
    /// The oldest Node.js that it runs on, if not every supported one.
    pub(in crate::agent) min_node: Option<u32>,
    pub(super) sign_in: SignInTraces,
}

#[derive(Debug)]
pub(super) struct Modes {
    /// The agent requests permission for edits and commands.
    pub(super) asking: &'static [AcpSetting],
    /// The agent changes nothing by itself.
    pub(super) read_only: &'static [AcpSetting],
    /// The agent requests nothing.
    pub(super) full_access: &'static [AcpSetting],
}

#[derive(Debug)]
pub(super) enum ModelInput {
    Session,
    Variable(&'static str),
}

/// What shows without the network that a user has signed in.
#[derive(Debug)]
pub(super) struct SignInTraces {
    /// Any of these variables is enough.
    pub(super) variables: &'static [&'static str],
    /// Any of these files below HOME is enough. Empty if the agent has other ways that cannot be seen.
    pub(super) files: &'static [&'static str],
}

/// Whether an agent is signed in, as far as variables and files show. `None` if the agent has ways to sign in
/// that cannot be seen.
pub(in crate::agent) fn check_sign_in(agent: &AcpProfile, environment: &Variables) -> Option<HealthCheck> {
    let SignInTraces { variables, files } = agent.sign_in;
    if files.is_empty() {
        return None;
    }
    let home = variable(environment, "HOME").unwrap_or_default();
    let given = variables.iter().find(|name| set_variable(environment, name).is_some());
    let stored = || files.iter().find(|file| Path::new(home).join(file).is_file());
    let found =
        given.map(|name| format!("{name} is set")).or_else(|| Some(format!("~/{} exists", stored()?)));
    if let Some(found) = found {
        return Some(HealthCheck::sign_in(HealthStatus::Ok, found, None));
    }
    let variables = variables.join(", ");
    let message = format!("no sign-in was found: none of {variables} is set, and no sign-in is stored");
    let suggestion = agent.profile.sign_in_command.map(|command| format!("run '{command}' to sign in"));
    Some(HealthCheck::sign_in(HealthStatus::Warning, message, suggestion))
}
