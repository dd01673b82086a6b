//! How a task ended: the state, and the facts that belong to it.

use super::lifecycle::State;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

/// Which limit a task ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    Idle,
    Hard,
}

impl LimitKind {
    pub fn name(self) -> &'static str {
        match self {
            LimitKind::Idle => "idle",
            LimitKind::Hard => "hard",
        }
    }
}

/// Why a task failed, as precisely as callers may branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// Not signed in, or the credentials were refused.
    Auth,
    /// The plan's limit; the agent may have told when it is reset.
    UsageLimit,
    RateLimit,
    Network,
    BadModel,
    /// The sandbox the mode needs cannot be had here.
    Sandbox,
    /// The agent refuses to work in this directory.
    UntrustedDirectory,
    /// The agent announced another thread than the one to be resumed.
    WrongThread,
    ThreadNotFound,
    /// The model or the agent gave up with a message of its own.
    AgentError,
    /// It exited with a code other than 0 and said nothing better.
    AgentExit,
    /// It exited with 0 and never said that it was done.
    NoTerminalEvent,
    /// A signal we did not send.
    Killed,
    /// The program could not be started.
    SpawnFailed,
    TooManyProcesses,
    SupervisorLost,
    SupervisorStartFailed,
    /// Something of our own went wrong.
    Internal,
}

impl FailureKind {
    pub const ALL: [FailureKind; 18] = [
        FailureKind::Auth,
        FailureKind::UsageLimit,
        FailureKind::RateLimit,
        FailureKind::Network,
        FailureKind::BadModel,
        FailureKind::Sandbox,
        FailureKind::UntrustedDirectory,
        FailureKind::WrongThread,
        FailureKind::ThreadNotFound,
        FailureKind::AgentError,
        FailureKind::AgentExit,
        FailureKind::NoTerminalEvent,
        FailureKind::Killed,
        FailureKind::SpawnFailed,
        FailureKind::TooManyProcesses,
        FailureKind::SupervisorLost,
        FailureKind::SupervisorStartFailed,
        FailureKind::Internal,
    ];

    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Auth => "auth",
            FailureKind::UsageLimit => "usage_limit",
            FailureKind::RateLimit => "rate_limit",
            FailureKind::Network => "network",
            FailureKind::BadModel => "bad_model",
            FailureKind::Sandbox => "sandbox",
            FailureKind::UntrustedDirectory => "untrusted_directory",
            FailureKind::WrongThread => "wrong_thread",
            FailureKind::ThreadNotFound => "thread_not_found",
            FailureKind::AgentError => "agent_error",
            FailureKind::AgentExit => "agent_exit",
            FailureKind::NoTerminalEvent => "no_terminal_event",
            FailureKind::Killed => "killed",
            FailureKind::SpawnFailed => "spawn_failed",
            FailureKind::TooManyProcesses => "too_many_processes",
            FailureKind::SupervisorLost => "supervisor_lost",
            FailureKind::SupervisorStartFailed => "supervisor_start_failed",
            FailureKind::Internal => "internal",
        }
    }

    pub fn from_name(name: &str) -> Option<FailureKind> {
        FailureKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEnd {
    Completed,
    Failed {
        kind: FailureKind,
        message: String,
        /// When it is worth trying again, in the agent's own words, where it told.
        retry_at: Option<String>,
    },
    Cancelled {
        reason: Option<String>,
    },
    Timeout(LimitKind),
}

impl TaskEnd {
    pub fn state(&self) -> State {
        match self {
            TaskEnd::Completed => State::Completed,
            TaskEnd::Failed { .. } => State::Failed,
            TaskEnd::Cancelled { .. } => State::Cancelled,
            TaskEnd::Timeout(_) => State::Timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_names_round_trip() {
        for kind in FailureKind::ALL {
            assert_eq!(FailureKind::from_name(kind.name()), Some(kind));
        }
    }

    #[test]
    fn every_end_is_terminal() {
        let failed = TaskEnd::Failed { kind: FailureKind::Auth, message: String::new(), retry_at: None };
        for end in [
            TaskEnd::Completed,
            failed,
            TaskEnd::Cancelled { reason: None },
            TaskEnd::Timeout(LimitKind::Idle),
        ] {
            assert!(end.state().is_terminal());
        }
    }
}
