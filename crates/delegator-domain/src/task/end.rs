//! How a task ended: its terminal state and the details of that state.

use super::lifecycle::State;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

/// The time limit that a task exceeded.
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

/// Why a task failed. Callers branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// Not signed in, or the credentials were rejected.
    Auth,
    /// The usage limit of the plan; the agent may have reported when it resets.
    UsageLimit,
    RateLimit,
    Network,
    BadModel,
    /// The sandbox that the mode requires is not available.
    Sandbox,
    /// The agent refuses to work in this directory.
    UntrustedDirectory,
    /// The agent reported a different thread than the one to resume.
    WrongThread,
    ThreadNotFound,
    /// The agent ended with an error message of its own.
    AgentError,
    /// The agent exited with a non-zero code and no error message.
    AgentExit,
    /// The agent exited with 0 but never reported the end of its turn.
    NoTerminalEvent,
    /// The agent was killed by a signal that we did not send.
    Killed,
    /// The agent program could not be started.
    SpawnFailed,
    TooManyProcesses,
    SupervisorLost,
    SupervisorStartFailed,
    /// An error of mcp-delegator itself.
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
        /// When to retry, as the agent reported it.
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
