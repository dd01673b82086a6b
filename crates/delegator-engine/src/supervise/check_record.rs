//! The record of a verify command: how it ended, and what it printed.
//!
//! It is part of the task's `report.json` and redacted like the rest of it.

use delegator_domain::task::{ExitStatus, Verification};
use delegator_domain::text::first_line;
use delegator_supervisor::run::{StreamSummary, VerificationResult};
use delegator_transcript::{TestReport, test_report};
use serde::{Deserialize, Serialize};

use crate::submit::launch_file::Verify;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRecord {
    pub outcome: Verification,
    pub detail: Option<String>,
    pub command: String,
    pub is_sandboxed: bool,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub duration_ms: u64,
    pub output: StreamSummary,
    pub last_output: String,
    pub tests: Option<TestReport>,
}

impl CheckRecord {
    pub(crate) fn of(
        result: &VerificationResult,
        verify: &Verify,
        redact: impl Fn(&str) -> String,
    ) -> CheckRecord {
        let exit_code = result.exit.and_then(ExitStatus::code);
        let command = redact(&verify.command.text());
        let tests = test_report(&command, &result.last_output, exit_code);
        CheckRecord {
            outcome: result.outcome,
            detail: result.detail.clone(),
            command,
            is_sandboxed: verify.is_sandboxed,
            exit_code,
            signal: result.exit.and_then(ExitStatus::signal),
            duration_ms: u64::try_from(result.elapsed.as_millis()).unwrap_or(u64::MAX),
            output: result.output.clone(),
            last_output: result.last_output.clone(),
            tests,
        }
    }

    /// Half a sentence for the summary: `verified by …`, or why not.
    pub fn describe(&self) -> String {
        let command = short_command(&self.command);
        let reason = match (self.outcome, self.exit_code, self.signal) {
            (Verification::Verified, ..) => return format!("verified by `{command}`"),
            (Verification::Refuted, Some(code), _) => format!("exited with {code}"),
            (Verification::Refuted, None, Some(signal)) => format!("was killed by signal {signal}"),
            (Verification::TimedOut, ..) => "timed out".to_owned(),
            (Verification::CannotStart, ..) => "cannot be started".to_owned(),
            (Verification::TooManyProcesses, ..) => "had too many processes".to_owned(),
            (Verification::SandboxFailed, ..) => "was not run, because the sandbox did not start".to_owned(),
            (Verification::Cancelled, ..) => "was cancelled".to_owned(),
            _ => "ended in an unknown way".to_owned(),
        };
        match self.outcome.status() {
            "verify_failed" => format!("verification failed: `{command}` {reason}"),
            _ => format!("not verified: `{command}` {reason}"),
        }
    }
}

fn short_command(command: &str) -> String {
    let mut short = first_line(command, 120);
    if short.len() < command.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(outcome: Verification, exit_code: Option<i32>, signal: Option<i32>) -> String {
        let record = CheckRecord {
            outcome,
            detail: None,
            command: "cargo test".to_owned(),
            is_sandboxed: true,
            exit_code,
            signal,
            duration_ms: 1,
            output: StreamSummary::default(),
            last_output: String::new(),
            tests: None,
        };
        record.describe()
    }

    #[test]
    fn a_check_is_described_in_one_sentence() {
        assert_eq!(describe(Verification::Verified, Some(0), None), "verified by `cargo test`");
        let failed = describe(Verification::Refuted, Some(101), None);
        assert_eq!(failed, "verification failed: `cargo test` exited with 101");
        let killed = describe(Verification::Refuted, None, Some(9));
        assert_eq!(killed, "verification failed: `cargo test` was killed by signal 9");
        assert!(
            describe(Verification::SandboxFailed, Some(1), None)
                .starts_with("not verified: `cargo test` was not")
        );
        assert!(describe(Verification::TimedOut, None, Some(9)).ends_with("timed out"));
    }
}
