//! What `doctor` reports about agents, besides whether their programs are found.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthStatus {
    Ok,
    Warning,
    Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthSubject {
    /// The directory that contains the agent's configuration and state.
    Home,
    /// The agent's own configuration. The agent does not start with an invalid one, so nothing else can be
    /// checked.
    Configuration,
    SignIn,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    pub subject: HealthSubject,
    pub status: HealthStatus,
    pub message: String,
    pub suggestion: Option<String>,
}

impl HealthCheck {
    pub(super) fn sign_in(
        status: HealthStatus,
        message: impl Into<String>,
        suggestion: Option<String>,
    ) -> HealthCheck {
        HealthCheck { subject: HealthSubject::SignIn, status, message: message.into(), suggestion }
    }
}
