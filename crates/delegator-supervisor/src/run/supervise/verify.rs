//! The check of an agent's work: a second run under the same supervisor, after the agent's own and its sweep.
//!
//! It is held, timed, cancelled and swept as the agent was. What it prints is kept and not understood, and nothing it
//! does changes what the agent is said to have done; only a cancel that comes while it runs is the task's end.

use std::io;
use std::time::Duration;

use delegator_domain::task::{End, Verification};
use delegator_transcript::shell;

use super::super::limits::{IdleCounts, Limits};
use super::super::ports::{Checked, Ended, Ports, RunSpec, Snapshot, StreamSummary};
use super::finish::{LAST_BYTES, redacted_end};
use super::{Role, Run};
use crate::agent::LaunchPlan;
use crate::process::SweepReport;
use crate::verdict::{Cause, judge};

/// Runs the check, if there is one and something to check.
pub(super) fn verify(ended: &mut Ended, mut spec: RunSpec, before: Option<Snapshot>, ports: &dyn Ports) {
    let Some(check) = spec.verify.take().filter(|_| ended.end == End::Completed) else { return };
    let shown = spec.redactor.redact_str(&shell::join(&check.plan.command)).into_owned();
    if let Some(before) = before {
        ports.on_snapshot(&Snapshot { current_activity: Some(format!("Verifying: {shown}")), ..before });
    }
    ports.before_check(&ended.report);
    let limit = time_left(spec.limits.hard, ended.elapsed, check.at_least);
    // How quiet it is says nothing of a check.
    spec.limits = Limits { idle: limit, hard: limit, idle_counts: IdleCounts::Output };
    spec.environment = check.plan.environment;
    spec.plan = LaunchPlan {
        program: check.plan.program,
        args: check.plan.args,
        env: Vec::new(),
        stdin: Vec::new(),
        ending: spec.plan.ending,
        expected_thread: None,
    };
    let witness = check.plan.witness;
    let is_enclosed = witness.is_some();
    match Run::start(spec, Role::Check { witness }, ports) {
        Ok(mut run) => {
            let swept = run.complete();
            run.tell_of_check(ended, swept, limit);
        }
        Err((spec, error)) => {
            let outcome = if is_enclosed { Verification::SandboxFailed } else { Verification::CannotStart };
            let detail = format!("{} cannot be started: {error}", spec.plan.program.display());
            ended.checked = Some(Checked {
                outcome,
                detail: Some(spec.redactor.redact_str(&detail).into_owned()),
                exit: None,
                elapsed: Duration::ZERO,
                output: StreamSummary::default(),
                last_output: String::new(),
            });
        }
    }
}

/// What the agent left of the hard limit, but never too little to be of use.
fn time_left(hard: Duration, used: Duration, at_least: Duration) -> Duration {
    hard.saturating_sub(used).max(at_least)
}

impl Run<'_> {
    /// Adds what became of the check to what is known of the agent.
    fn tell_of_check(mut self, ended: &mut Ended, swept: io::Result<SweepReport>, limit: Duration) {
        self.complaints.finish();
        let outcome = judge(self.cause.as_ref(), self.exit, self.complaints.witness.was_heard());
        let printed = self.complaints.pipe.received().saturating_sub(self.complaints.witness.taken());
        let output = self.complaints.store().summary(printed);
        let problem = output.problem.as_ref();
        ended
            .warnings
            .extend(problem.map(|problem| format!("not all of the check's output was stored: {problem}")));
        match swept {
            Ok(swept) => {
                let left = swept.survivors.iter().map(|left| left.pid.to_string()).collect::<Vec<_>>();
                if !left.is_empty() {
                    let pids = left.join(", ");
                    ended.warnings.push(format!("kill_incomplete: of the check still alive are {pids}"));
                }
                ended.sweep.survivors.extend(swept.survivors);
                ended.sweep.exempt.extend(swept.exempt);
            }
            Err(error) => ended.warnings.push(format!("the sweep after the check failed: {error}")),
        }
        let redactor = &self.spec.redactor;
        let detail = detail(outcome, self.cause.as_ref(), limit);
        ended.checked = Some(Checked {
            outcome,
            detail: detail.map(|text| redactor.redact_str(&text).into_owned()),
            exit: self.exit,
            elapsed: self.ended.unwrap_or_default(),
            output,
            last_output: self.complaints.store().tail(LAST_BYTES),
        });
        if let Some(Cause::Cancelled { reason }) = self.cause {
            ended.end = redacted_end(redactor, End::Cancelled { reason });
            ended.signals = self.signals;
        }
    }
}

fn detail(outcome: Verification, cause: Option<&Cause>, limit: Duration) -> Option<String> {
    match (outcome, cause) {
        (Verification::TimedOut, _) => Some(format!("it was ended after {} s", limit.as_secs())),
        (Verification::TooManyProcesses, Some(Cause::TooManyProcesses { count })) => {
            Some(format!("it had {count} processes"))
        }
        (Verification::SandboxFailed, _) => {
            Some("the sandbox did not come up; what it said is in the output".to_owned())
        }
        (Verification::Unknown, Some(Cause::Internal { message })) => Some(message.clone()),
        (Verification::Unknown, _) => Some("nobody knows how it ended".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_has_what_is_left_or_a_minute() {
        let seconds = Duration::from_secs;
        assert_eq!(time_left(seconds(1200), seconds(200), seconds(60)), seconds(1000));
        assert_eq!(time_left(seconds(1200), seconds(1190), seconds(60)), seconds(60));
        assert_eq!(time_left(seconds(1), seconds(2), seconds(60)), seconds(60));
    }
}
