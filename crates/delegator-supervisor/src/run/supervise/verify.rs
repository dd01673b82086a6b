//! Runs the verification of an agent's work: a second run under the same supervisor, after the agent's sweep.
//!
//! It is confined, timed, cancelled and swept like the agent. Its output is stored but not decoded, and
//! nothing it does changes the agent's result, except that a cancel during the verification cancels the task.

use std::io;
use std::time::Duration;

use delegator_domain::task::{TaskEnd, Verification};

use super::super::limits::Limits;
use super::super::ports::{Ports, RunResult, RunSpec, Snapshot, StreamSummary, VerificationResult};
use super::finish::{LAST_BYTES, storage_warning, survivor_warning};
use super::state::Run;
use super::streams::Role;
use crate::agent::LaunchPlan;
use crate::conversation::ConversationPlan;
use crate::process::SweepReport;
use crate::verdict::{Cause, verification_outcome};

pub(super) fn verify(
    result: &mut RunResult,
    mut spec: RunSpec,
    last_snapshot: Option<Snapshot>,
    ports: &dyn Ports,
) {
    let Some(verification) = spec.verify.take().filter(|_| result.end == TaskEnd::Completed) else { return };
    let command_text = spec.redactor.redact_str(&verification.command.text()).into_owned();
    if let Some(last_snapshot) = last_snapshot {
        ports.on_snapshot(&Snapshot {
            current_activity: Some(format!("Verifying: {command_text}")),
            ..last_snapshot
        });
    }
    ports.before_verification(result);
    let limit = time_left(spec.limits.hard, result.elapsed, verification.min_time);
    // A verification may be silent: only the hard limit applies.
    spec.limits = Limits { idle: limit, hard: limit, only_output_counts: true };
    spec.environment = verification.plan.environment;
    let ending = spec.plan.ending.signals_only();
    spec.plan = LaunchPlan {
        program: verification.plan.program,
        args: verification.plan.args,
        env: Vec::new(),
        conversation: ConversationPlan::Once { stdin: Vec::new() },
        ending: ending.clone(),
        finish: ending,
        linger: Duration::ZERO,
        expected_thread: None,
    };
    let sentinel = verification.plan.sentinel;
    let is_sandboxed = sentinel.is_some();
    match Run::start(spec, &Role::Verification { sentinel }, ports) {
        Ok(mut run) => {
            let sweep_result = run.run_to_end();
            run.record_verification(result, sweep_result, limit);
        }
        Err((spec, error)) => {
            let outcome = if is_sandboxed { Verification::SandboxFailed } else { Verification::CannotStart };
            let detail = format!("could not start {}: {error}", spec.plan.program.display());
            result.verification = Some(VerificationResult {
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

/// What the agent left of the hard limit, but at least `min_time`.
fn time_left(hard: Duration, used: Duration, min_time: Duration) -> Duration {
    hard.saturating_sub(used).max(min_time)
}

impl Run<'_> {
    fn record_verification(
        self,
        result: &mut RunResult,
        sweep_result: io::Result<SweepReport>,
        limit: Duration,
    ) {
        let Run { context, process, mut streams, ending, ended_at, .. } = self;
        let stderr = &mut streams.stderr;
        stderr.finish();
        let outcome = verification_outcome(ending.cause.as_ref(), process.exit, stderr.sentinel.is_found());
        let output = stderr.summary();
        result.warnings.extend(storage_warning("all output of the verification", &output));
        match sweep_result {
            Ok(sweep) => {
                result.warnings.extend(survivor_warning(&sweep, " of the verification"));
                result.sweep.survivors.extend(sweep.survivors);
                result.sweep.exempt.extend(sweep.exempt);
            }
            Err(error) => {
                let warning = format!("could not sweep the processes of the verification: {error}");
                result.warnings.push(warning);
            }
        }
        let detail = detail(outcome, ending.cause.as_ref(), limit);
        result.verification = Some(VerificationResult {
            outcome,
            detail: detail.map(|text| context.redact(&text)),
            exit: process.exit,
            elapsed: ended_at.unwrap_or_default(),
            output,
            last_output: stderr.sink.store.tail(LAST_BYTES),
        });
        if let Some(Cause::Cancelled { reason }) = ending.cause {
            result.end = TaskEnd::Cancelled { reason }.redacted(&context.spec.redactor);
            result.signals = ending.signals;
        }
    }
}

fn detail(outcome: Verification, cause: Option<&Cause>, limit: Duration) -> Option<String> {
    match (outcome, cause) {
        (Verification::TimedOut, _) => Some(format!("ended after its time limit of {} s", limit.as_secs())),
        (Verification::TooManyProcesses, Some(Cause::TooManyProcesses { count })) => {
            Some(format!("exceeded the process limit with {count} processes"))
        }
        (Verification::SandboxFailed, _) => {
            Some("the sandbox did not start; see the output for its messages".to_owned())
        }
        (Verification::Unknown, Some(Cause::Internal { message })) => Some(message.clone()),
        (Verification::Unknown, _) => Some("its exit status is unknown".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verification_gets_the_remaining_time_or_the_minimum() {
        let seconds = Duration::from_secs;
        assert_eq!(time_left(seconds(1200), seconds(200), seconds(60)), seconds(1000));
        assert_eq!(time_left(seconds(1200), seconds(1190), seconds(60)), seconds(60));
        assert_eq!(time_left(seconds(1), seconds(2), seconds(60)), seconds(60));
    }
}
