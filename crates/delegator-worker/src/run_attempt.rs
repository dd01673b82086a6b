//! Runs one attempt of a task, from the claim to its report.

use std::sync::Arc;

use delegator_domain::task::{FailureKind, TaskEnd};
use delegator_fleet::TaskSpec;

use crate::attempt::Attempt;
use crate::attempt_control::AttemptControl;
use crate::attempt_files::{AttemptFiles, PreparedAttempt};
use crate::finish::report_end;
use crate::following::{Followed, follow};
use crate::local_tasks::{end_local_tasks, remove_checkout};
use crate::outcome::{Ended, Outcome, stopped};
use crate::port::{LocalRequest, WorkerEvent};
use crate::preparation::prepare;
use crate::shared::Shared;
use crate::submission::{NotSubmitted, find_or_submit};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Begin,
    /// An earlier process has started it.
    Resume,
    /// Its thread is gone, but the database counts it as running here.
    GiveUp,
}

pub(crate) fn run_attempt(shared: &Shared<'_>, control: &Arc<AttemptControl>, spec: &TaskSpec, work: Work) {
    let _registration = Registration { shared, control };
    let files = AttemptFiles::new(shared.workspace.attempt(&control.claim));
    let attempt = Attempt { shared, control, spec, files };
    let outcome = match work {
        Work::Begin => match prepare(&attempt) {
            Ok(prepared) => submit_and_follow(&attempt, prepared),
            Err(outcome) => outcome,
        },
        Work::Resume => resume(&attempt),
        Work::GiveUp => Outcome::GivenUp("the worker no longer runs the task".to_owned()),
    };
    // The task may be started elsewhere as soon as the fleet knows.
    let is_unused = outcome.is_ended_here() || end_local_tasks(shared, attempt.files.dir());
    if !is_unused && shared.signals.is_abandoning() {
        return;
    }
    let is_reported = report_end(&attempt, outcome);
    // What was not reported is found again by the next worker process.
    if is_reported && is_unused {
        remove_checkout(shared, attempt.files.dir());
    }
}

/// Frees the slot, also after a panic.
struct Registration<'a> {
    shared: &'a Shared<'a>,
    control: &'a AttemptControl,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.shared.unregister(&self.control.claim);
    }
}

/// An attempt that was prepared completely has a task here that an earlier process submitted, or is submitted
/// now.
fn resume(attempt: &Attempt<'_>) -> Outcome {
    attempt.shared.report(&WorkerEvent::Resumed { task: attempt.control.log_name.clone() });
    match attempt.files.read_prepared() {
        Ok(Some(prepared)) => submit_and_follow(attempt, prepared),
        Ok(None) => Outcome::GivenUp("the worker was restarted while it prepared the task".to_owned()),
        Err(error) => Outcome::GivenUp(error.to_string()),
    }
}

fn submit_and_follow(attempt: &Attempt<'_>, prepared: PreparedAttempt) -> Outcome {
    let Attempt { shared, control, spec, files } = attempt;
    let ended = |end, local, warnings| {
        let setup_output = files.setup_output();
        Outcome::Ended(Box::new(Ended { end, base: Some(prepared), local, setup_output, warnings }))
    };
    let request = LocalRequest::new(control, spec, files.work());
    let local = match find_or_submit(shared, control, &request) {
        Ok(local) => local,
        Err(NotSubmitted::Stopped) => return stopped(control),
        Err(NotSubmitted::Unknown) => return Outcome::Dropped,
        Err(NotSubmitted::Refused(message)) => {
            return ended(TaskEnd::failed(FailureKind::SpawnFailed, message), None, Vec::new());
        }
    };
    shared.report(&WorkerEvent::Started { task: control.log_name.clone(), local: local.to_string() });
    match follow(shared, control, &local) {
        Followed::Ended { end, warnings } => ended(end, Some(local), warnings),
        Followed::GivenUp(cause) => Outcome::GivenUp(cause),
        Followed::Dropped => Outcome::Dropped,
    }
}
