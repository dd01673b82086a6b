//! How a task ended: its terminal state and the details of that state.

use super::lifecycle::State;
use crate::named_enum::named_enum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

named_enum! {
    /// The time limit that a task exceeded.
    pub enum LimitKind {
        Idle = "idle",
        Hard = "hard",
    }
}

named_enum! {
    /// Why a task failed. Callers branch on it.
    pub enum FailureKind {
        /// Not signed in, or the credentials were rejected.
        Auth = "auth",
        /// The usage limit of the plan; the agent may have reported when it resets.
        UsageLimit = "usage_limit",
        RateLimit = "rate_limit",
        Network = "network",
        BadModel = "bad_model",
        /// The sandbox that the mode requires is not available.
        Sandbox = "sandbox",
        /// The agent refuses to work in this directory.
        UntrustedDirectory = "untrusted_directory",
        /// The agent reported a different thread than the one to resume.
        WrongThread = "wrong_thread",
        ThreadNotFound = "thread_not_found",
        /// The agent ended with an error message of its own.
        AgentError = "agent_error",
        /// The agent exited with a non-zero code and no error message.
        AgentExit = "agent_exit",
        /// The agent exited with 0 but never reported the end of its turn.
        NoTerminalEvent = "no_terminal_event",
        /// The agent was killed by a signal that we did not send.
        Killed = "killed",
        SpawnFailed = "spawn_failed",
        TooManyProcesses = "too_many_processes",
        /// A budget of the task, of the day or of a label is exhausted.
        BudgetExhausted = "budget_exhausted",
        SupervisorLost = "supervisor_lost",
        SupervisorStartFailed = "supervisor_start_failed",
        /// A provider reported the failure of a task that it ran.
        RemoteFailed = "remote_failed",
        /// The worktree of the task, or the checkout of its environment, could not be created.
        CheckoutFailed = "checkout_failed",
        /// The setup script of the worktree or the environment failed, so the agent was not started.
        SetupFailed = "setup_failed",
        /// No restore point could be created, so the agent was not started.
        RestorePointFailed = "restore_point_failed",
        /// It is unknown whether a provider accepted the task.
        SubmissionUnconfirmed = "submission_unconfirmed",
        /// The submission was interrupted, and the provider does not have the task.
        NotAccepted = "not_accepted",
        /// The provider had the task and does not have it any more, so how it ended is unknown.
        RemoteGone = "remote_gone",
        /// The worker of the fleet that ran the task is gone.
        WorkerLost = "worker_lost",
        /// An error of mcp-delegator itself.
        Internal = "internal",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEnd {
    Completed,
    Failed {
        kind: FailureKind,
        /// Only words of the agent; ours if we observed the failure ourselves ([`FailureKind::Killed`] and
        /// the like).
        message: String,
        /// When the agent expects its model to be available again, in milliseconds since 1970.
        retry_at_ms: Option<i64>,
    },
    Cancelled {
        reason: Option<String>,
    },
    Timeout(LimitKind),
}

impl TaskEnd {
    /// A failure that no waiting cures by itself.
    pub fn failed(kind: FailureKind, message: impl Into<String>) -> TaskEnd {
        TaskEnd::Failed { kind, message: message.into(), retry_at_ms: None }
    }

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
        let failed = TaskEnd::Failed { kind: FailureKind::Auth, message: String::new(), retry_at_ms: None };
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
