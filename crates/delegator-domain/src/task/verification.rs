//! What became of the command that checks an agent's work.
//!
//! The agent's word and ours are two things: a task is completed when its agent says so, and verified when the command
//! we ran ourselves afterwards ended with 0.

use super::end::{FailureKind, TaskEnd};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    Verified,
    /// It ended with another code than 0, or by a signal.
    Refuted,
    /// There is no such program, or it may not be run.
    CannotStart,
    TimedOut,
    TooManyProcesses,
    /// The sandbox did not come up, so the command was never begun.
    SandboxFailed,
    Cancelled,
    AgentFailed,
    AgentTimedOut,
    /// Nobody is left who knows whether it was run.
    SupervisorLost,
    /// Something of our own failed, or it could not be ended.
    Unknown,
}

impl Verification {
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

    /// Why there was none, judged by how the task ended.
    pub fn not_run(end: &TaskEnd) -> Verification {
        match end {
            TaskEnd::Cancelled { .. } => Verification::Cancelled,
            TaskEnd::Timeout(_) => Verification::AgentTimedOut,
            TaskEnd::Failed { kind: FailureKind::SupervisorLost, .. } => Verification::SupervisorLost,
            TaskEnd::Failed { .. } => Verification::AgentFailed,
            TaskEnd::Completed => Verification::Unknown,
        }
    }

    /// The three answers to the one question.
    pub fn status(self) -> &'static str {
        match self {
            Verification::Verified => "verified",
            Verification::Refuted
            | Verification::CannotStart
            | Verification::TimedOut
            | Verification::TooManyProcesses => "verify_failed",
            Verification::SandboxFailed
            | Verification::Cancelled
            | Verification::AgentFailed
            | Verification::AgentTimedOut
            | Verification::SupervisorLost
            | Verification::Unknown => "not_run",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Verification::Verified => "verified",
            Verification::Refuted => "refuted",
            Verification::CannotStart => "cannot_start",
            Verification::TimedOut => "timed_out",
            Verification::TooManyProcesses => "too_many_processes",
            Verification::SandboxFailed => "sandbox_failed",
            Verification::Cancelled => "cancelled",
            Verification::AgentFailed => "agent_failed",
            Verification::AgentTimedOut => "agent_timed_out",
            Verification::SupervisorLost => "supervisor_lost",
            Verification::Unknown => "unknown",
        }
    }

    pub fn from_name(name: &str) -> Option<Verification> {
        Verification::ALL.into_iter().find(|verification| verification.name() == name)
    }

    /// Why it is not verified, where the exit code does not say it.
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
    use crate::task::LimitKind;

    #[test]
    fn verification_names_round_trip() {
        for verification in Verification::ALL {
            assert_eq!(Verification::from_name(verification.name()), Some(verification));
        }
        assert_eq!(Verification::from_name("sure"), None);
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
