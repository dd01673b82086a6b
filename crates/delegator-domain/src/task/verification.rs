//! What became of the command that checks an agent's work.
//!
//! The agent's word and ours are two things: a task is completed when its agent says so, and verified when the command
//! we ran ourselves afterwards ended with 0.

use super::end::{End, FailureKind};

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
    pub fn never_begun(end: &End) -> Verification {
        match end {
            End::Cancelled { .. } => Verification::Cancelled,
            End::Timeout(_) => Verification::AgentTimedOut,
            End::Failed { kind: FailureKind::SupervisorLost, .. } => Verification::SupervisorLost,
            End::Failed { .. } => Verification::AgentFailed,
            End::Completed => Verification::Unknown,
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

    pub fn named(name: &str) -> Option<Verification> {
        Verification::ALL.into_iter().find(|one| one.name() == name)
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
    fn every_outcome_is_found_by_its_name() {
        for one in Verification::ALL {
            assert_eq!(Verification::named(one.name()), Some(one));
        }
        assert_eq!(Verification::named("sure"), None);
    }

    #[test]
    fn what_never_ran_says_why() {
        let of = |end| Verification::never_begun(&end);
        assert_eq!(of(End::Cancelled { reason: None }).reason(), Some("cancelled"));
        assert_eq!(of(End::Timeout(LimitKind::Idle)).reason(), Some("agent_timed_out"));
        assert_eq!(of(End::Completed).status(), "not_run");
        assert_eq!(Verification::Verified.reason(), None);
    }
}
