//! How a task ended: its terminal state, the details of that state, and whether its work was verified.
//!
//! The agent's own report and our verification are separate: a task is completed when its agent reports
//! success, and verified when the verify command, which we run afterwards, exits with 0.

use serde::{Deserialize, Serialize};

use super::lifecycle::State;
use crate::named_enum::named_enum;
use crate::redact::Redactor;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

impl ExitStatus {
    pub fn code(self) -> Option<i32> {
        if let ExitStatus::Code(code) = self { Some(code) } else { None }
    }

    pub fn signal(self) -> Option<i32> {
        if let ExitStatus::Signal(signal) = self { Some(signal) } else { None }
    }
}

named_enum! {
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

named_enum! {
    /// A terminal state, in which a completed task whose check failed is another one than a completed task.
    /// The worst is the last.
    pub enum EndKind {
        Completed = "completed",
        VerifyFailed = "verify_failed",
        Cancelled = "cancelled",
        Timeout = "timeout",
        Failed = "failed",
    }
}

impl EndKind {
    pub fn state(self) -> State {
        match self {
            EndKind::Completed | EndKind::VerifyFailed => State::Completed,
            EndKind::Cancelled => State::Cancelled,
            EndKind::Timeout => State::Timeout,
            EndKind::Failed => State::Failed,
        }
    }

    /// As people read it.
    pub fn words(self) -> &'static str {
        if self == EndKind::VerifyFailed { "verify failed" } else { self.name() }
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

    pub fn kind(&self, verification: Option<Verification>) -> EndKind {
        match self {
            TaskEnd::Completed if verification.is_some_and(Verification::has_failed) => EndKind::VerifyFailed,
            TaskEnd::Completed => EndKind::Completed,
            TaskEnd::Failed { .. } => EndKind::Failed,
            TaskEnd::Cancelled { .. } => EndKind::Cancelled,
            TaskEnd::Timeout(_) => EndKind::Timeout,
        }
    }

    pub fn redacted(self, redactor: &Redactor) -> TaskEnd {
        let redact = |text: String| redactor.redact_str(&text).into_owned();
        match self {
            TaskEnd::Failed { kind, message, retry_at_ms } => {
                TaskEnd::Failed { kind, message: redact(message), retry_at_ms }
            }
            TaskEnd::Cancelled { reason } => TaskEnd::Cancelled { reason: reason.map(redact) },
            TaskEnd::Completed | TaskEnd::Timeout(_) => self,
        }
    }
}

named_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Verification {
        Verified = "verified",
        /// The command exited with a non-zero code, or was killed by a signal.
        Refuted = "refuted",
        /// The program does not exist or may not be executed.
        CannotStart = "cannot_start",
        TimedOut = "timed_out",
        TooManyProcesses = "too_many_processes",
        /// The sandbox could not be set up, so the command was never started.
        SandboxFailed = "sandbox_failed",
        Cancelled = "cancelled",
        AgentFailed = "agent_failed",
        AgentTimedOut = "agent_timed_out",
        /// The supervisor died, so it is unknown whether the command ran.
        SupervisorLost = "supervisor_lost",
        /// An internal error, or the command could not be stopped.
        Unknown = "unknown",
    }
}

impl Verification {
    /// Why the command did not run, derived from how the task ended.
    pub fn not_run(end: &TaskEnd) -> Verification {
        match end {
            TaskEnd::Cancelled { .. } => Verification::Cancelled,
            TaskEnd::Timeout(_) => Verification::AgentTimedOut,
            TaskEnd::Failed { kind: FailureKind::SupervisorLost, .. } => Verification::SupervisorLost,
            TaskEnd::Failed { .. } => Verification::AgentFailed,
            TaskEnd::Completed => Verification::Unknown,
        }
    }

    /// `verified`, `verify_failed` or `not_run`.
    pub fn status(self) -> &'static str {
        match self {
            Verification::Verified => "verified",
            Verification::Refuted
            | Verification::CannotStart
            | Verification::TimedOut
            | Verification::TooManyProcesses => "verify_failed",
            _ => "not_run",
        }
    }

    /// Whether the command ran and did not succeed.
    pub fn has_failed(self) -> bool {
        self.status() == "verify_failed"
    }

    /// Why the work is not verified, where the exit code does not show it.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Verification::Verified | Verification::Refuted => None,
            other => Some(other.name()),
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

    const ALL: [Verification; 11] = [
        Verification::Verified,
        Verification::Refuted,
        Verification::CannotStart,
        Verification::TimedOut,
        Verification::TooManyProcesses,
        Verification::SandboxFailed,
        Verification::Cancelled,
        Verification::AgentFailed,
        Verification::AgentTimedOut,
        Verification::SupervisorLost,
        Verification::Unknown,
    ];

    #[test]
    fn verification_names_round_trip() {
        let parse = |name: &str| serde_json::from_value::<Verification>(name.into()).ok();
        for verification in ALL {
            assert_eq!(parse(verification.name()), Some(verification));
        }
        assert_eq!(parse("sure"), None);
    }

    #[test]
    fn a_verification_that_never_ran_has_a_reason() {
        let not_run = |end| Verification::not_run(&end);
        assert_eq!(not_run(TaskEnd::Cancelled { reason: None }).reason(), Some("cancelled"));
        assert_eq!(not_run(TaskEnd::Timeout(LimitKind::Idle)).reason(), Some("agent_timed_out"));
        assert_eq!(not_run(TaskEnd::Completed).status(), "not_run");
        assert_eq!(Verification::Verified.reason(), None);
    }
}
