//! Supervises one run: the agent, then the verification, if any.
//!
//! `state` holds the parts of a run, each of which owns one concern and uses no part above it; `event_loop`
//! drives them; `finish` assembles the result.

mod agent_process;
mod budgets;
mod event_loop;
mod finish;
mod progress;
mod run_ending;
mod salvage;
mod state;
mod streams;
mod talk;
mod tool_commands;
mod verify;

use std::time::{Duration, Instant};

use rustix::process::{getpid, set_child_subreaper};

use super::ports::{Ports, RunResult, RunSpec};
use crate::process::niceness::raise_niceness;
pub use finish::{redact_record, redacted_report};
pub use progress::{changed_files, last_message, next_percent};
use state::Run;
use streams::Role;

/// Longest time between two rounds.
const TICK: Duration = Duration::from_secs(1);
const UPKEEP_INTERVAL: Duration = Duration::from_secs(30);

/// What every part of a run may read.
struct RunContext<'a> {
    spec: RunSpec,
    ports: &'a dyn Ports,
    started: Instant,
}

impl RunContext<'_> {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn redact(&self, text: &str) -> String {
        self.spec.redactor.redact_str(text).into_owned()
    }
}

/// Runs the agent to its end, then the verification, if any. Takes over the process, see the crate
/// documentation.
pub fn supervise(spec: RunSpec, ports: &dyn Ports) -> RunResult {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        return finish::not_started(&spec, &format!("cannot become a child subreaper: {error}"));
    }
    raise_niceness(spec.own_niceness);
    match Run::start(spec, &Role::Agent, ports) {
        Ok(mut run) => {
            let outcome = run.run_to_end();
            // To be continued by a verification.
            let final_snapshot = run.context.spec.verify.is_some().then(|| run.snapshot()).flatten();
            let (mut result, spec) = run.finish(outcome);
            verify::verify(&mut result, spec, final_snapshot, ports);
            result
        }
        Err((spec, error)) => finish::not_started(&spec, &error.to_string()),
    }
}
