//! What `doctor` reports about agents, besides whether their programs are found.

use delegator_domain::agents::AgentProtocol;

use super::environment::Variables;
use super::{Agent, codex};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthStatus {
    Ok,
    Warning,
    Problem,
}

/// One finding, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    pub name: &'static str,
    pub status: HealthStatus,
    pub message: String,
    pub suggestion: Option<&'static str>,
}

/// Checks the environment of agents of a protocol.
pub fn check_environment(protocol: AgentProtocol, environment: &Variables) -> Option<HealthCheck> {
    match protocol {
        AgentProtocol::CodexExec => Some(codex::check_home(environment)),
        AgentProtocol::Plain => None,
    }
}

impl Agent {
    /// Program and version, and whether that is a reason to warn.
    pub fn describe_program(&self) -> (HealthStatus, String) {
        let program = self.program.display();
        match (self.protocol, self.version) {
            (AgentProtocol::Plain, _) => (HealthStatus::Ok, program.to_string()),
            (AgentProtocol::CodexExec, None) => {
                (HealthStatus::Warning, format!("{program} does not report its version"))
            }
            (AgentProtocol::CodexExec, Some(version)) => {
                let (major, minor, patch) = version;
                match codex::version_warning(version) {
                    Some(warning) => (
                        HealthStatus::Warning,
                        format!("{program} is version {major}.{minor}.{patch}, {warning}"),
                    ),
                    None => (HealthStatus::Ok, format!("{program}, version {major}.{minor}.{patch}")),
                }
            }
        }
    }
}
