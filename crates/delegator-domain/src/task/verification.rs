//! The result of the command that verifies an agent's work.
//!
//! The agent's own report and our verification are separate: a task is completed when its agent reports
//! success, and verified when the verify command, which we run afterwards, exits with 0.

use serde::{Deserialize, Serialize};

use super::end::{FailureKind, TaskEnd};
use crate::named_enum::named_enum;

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
    use crate::task::LimitKind;

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
