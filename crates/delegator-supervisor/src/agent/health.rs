//! What is found out about an agent without giving it a task: what `doctor` reports, besides whether its
//! program is found, and whether its files show that it still has a thread.

use delegator_domain::similar_names;

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadLookup {
    /// The agent can resume it.
    Stored,
    /// The agent refuses to resume it until this command has run.
    Archived { unarchive: String },
    /// The agent's store does not hold it. `nearest` is a stored thread with a similar id.
    Unknown { nearest: Option<String> },
    /// The store could not be searched; only the agent can decide.
    NotSearchable,
}

impl ThreadLookup {
    /// A thread that is not among the stored ones.
    pub(super) fn unknown(thread_id: &str, stored: &[String]) -> ThreadLookup {
        let nearest = similar_names::nearest(thread_id, stored.iter().map(String::as_str));
        ThreadLookup::Unknown { nearest: nearest.map(str::to_owned) }
    }
}
