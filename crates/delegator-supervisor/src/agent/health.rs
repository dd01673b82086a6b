//! What `doctor` reports about agents, besides whether their programs are found.

use std::time::Duration;

use delegator_domain::agents::AgentProtocol;

use super::environment::Variables;
use super::{Agent, acp, claude, codex};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthStatus {
    Ok,
    Warning,
    Problem,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthSubject {
    /// The directory that contains the agent's configuration and state.
    Home,
    /// The agent's own configuration. The agent does not start with an invalid one, so nothing else can be checked.
    Configuration,
    SignIn,
}

/// One finding, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    pub subject: HealthSubject,
    pub status: HealthStatus,
    pub message: String,
    pub suggestion: Option<String>,
}

/// Checks the environment of agents of a protocol.
pub fn check_environment(protocol: AgentProtocol, environment: &Variables) -> Option<HealthCheck> {
    match protocol {
        AgentProtocol::CodexExec | AgentProtocol::CodexAppServer => Some(codex::check_home(environment)),
        AgentProtocol::Plain
        | AgentProtocol::IdleJsonl
        | AgentProtocol::ClaudeStream
        | AgentProtocol::Acp => None,
    }
}

impl Agent {
    /// Whether the agent can authenticate, as far as that is known without using the network; instead a problem of its
    /// configuration, if there is one. `environment` are the variables that it gets, `caller` those of the caller.
    pub fn check_sign_in(
        &self,
        environment: &Variables,
        caller: &Variables,
        limit: Duration,
    ) -> Option<HealthCheck> {
        match self.protocol {
            AgentProtocol::CodexExec | AgentProtocol::CodexAppServer => {
                Some(codex::check_sign_in(&self.program, &self.args, environment, caller, limit))
            }
            AgentProtocol::ClaudeStream => {
                Some(claude::check_sign_in(&self.program, &self.args, environment, caller, limit))
            }
            AgentProtocol::Acp => acp::check_sign_in(&self.name, environment),
            AgentProtocol::Plain | AgentProtocol::IdleJsonl => None,
        }
    }

    /// Program and version, and whether that is a reason to warn.
    pub fn describe_program(&self) -> (HealthStatus, String) {
        let program = self.program.display();
        match (self.protocol, self.version) {
            (AgentProtocol::Plain | AgentProtocol::IdleJsonl, _) => (HealthStatus::Ok, program.to_string()),
            (AgentProtocol::ClaudeStream, Some((major, minor, patch))) => {
                let tested = claude::TESTED_VERSION;
                (HealthStatus::Ok, format!("{program}, version {major}.{minor}.{patch} (tested: {tested})"))
            }
            (AgentProtocol::Acp, version) => acp::describe_program(&self.name, &self.program, version),
            (
                AgentProtocol::CodexExec | AgentProtocol::CodexAppServer | AgentProtocol::ClaudeStream,
                None,
            ) => (HealthStatus::Warning, format!("{program} does not report its version")),
            (AgentProtocol::CodexExec | AgentProtocol::CodexAppServer, Some(version)) => {
                let (major, minor, patch) = version;
                match codex::version_warning(version) {
                    Some(warning) => (
                        HealthStatus::Warning,
                        format!("{program} is version {major}.{minor}.{patch}, {warning}"),
                    ),
                    None => {
                        let tested = codex::tested_versions();
                        let message =
                            format!("{program}, version {major}.{minor}.{patch} (tested: {tested})");
                        (HealthStatus::Ok, message)
                    }
                }
            }
        }
    }
}
