//! Runs one attempt of a task, from the claim to its report. Its task is submitted to the registry of this
//! machine, unless an earlier process has submitted it.

use std::path::PathBuf;
use std::sync::Arc;

use delegator_domain::task::{FailureKind, TaskEnd, TaskId};
use delegator_engine::EngineError;
use delegator_fleet::TaskSpec;
use delegator_registry::{Idempotency, RegistryError};

use crate::attempt::{Attempt, AttemptEnd, AttemptFiles, Ended, PreparedAttempt, stopped};
use crate::attempt_control::AttemptControl;
use crate::decisions::back_off;
use crate::finish::report_end;
use crate::following::{Followed, follow};
use crate::local_tasks::{end_local_tasks, remove_checkout, repeat_local};
use crate::port::{LocalRequest, WorkerEvent};
use crate::preparation::prepare;
use crate::worker_state::WorkerState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Begin,
    /// An earlier process has started it.
    Resume,
    /// Its thread is gone, but the database counts it as running here.
    GiveUp,
}

pub(crate) fn run_attempt(
    shared: &WorkerState<'_>,
    control: &Arc<AttemptControl>,
    spec: &TaskSpec,
    work: Work,
) {
    let _registration = Registration { shared, control };
    let files = AttemptFiles { dir: shared.workspace.attempt(&control.claim) };
    let attempt = Attempt { shared, control, spec, files };
    let outcome = match work {
        Work::Begin => match prepare(&attempt) {
            Ok(prepared) => submit_and_follow(&attempt, prepared),
            Err(outcome) => outcome,
        },
        Work::Resume => resume(&attempt),
        Work::GiveUp => AttemptEnd::GivenUp("the worker no longer runs the task".to_owned()),
    };
    // The task may be started elsewhere as soon as the fleet knows.
    let is_unused = outcome.is_ended_here() || end_local_tasks(shared, &attempt.files.dir);
    if !is_unused && shared.signals.is_abandoning() {
        return;
    }
    let is_reported = report_end(&attempt, outcome);
    // What was not reported is found again by the next worker process.
    if is_reported && is_unused {
        remove_checkout(shared, &attempt.files.dir);
    }
}

/// Frees the slot, also after a panic.
struct Registration<'a> {
    shared: &'a WorkerState<'a>,
    control: &'a AttemptControl,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.shared.unregister(&self.control.claim);
    }
}

/// An attempt that was prepared completely has a task here that an earlier process submitted, or is submitted
/// now.
fn resume(attempt: &Attempt<'_>) -> AttemptEnd {
    attempt.shared.report(&WorkerEvent::Resumed { task: attempt.control.log_name.clone() });
    match attempt.files.read_prepared() {
        Ok(Some(prepared)) => submit_and_follow(attempt, prepared),
        Ok(None) => AttemptEnd::GivenUp("the worker was restarted while it prepared the task".to_owned()),
        Err(error) => AttemptEnd::GivenUp(error.to_string()),
    }
}

fn submit_and_follow(attempt: &Attempt<'_>, prepared: PreparedAttempt) -> AttemptEnd {
    let Attempt { shared, control, spec, files } = attempt;
    let ended = |end, local, warnings| {
        let setup_output = files.setup_output();
        AttemptEnd::Ended(Box::new(Ended { end, base: Some(prepared), local, setup_output, warnings }))
    };
    let request = LocalRequest::new(control, spec, files.work());
    let local = match find_or_submit(shared, control, &request) {
        Ok(local) => local,
        Err(NotSubmitted::Stopped) => return stopped(control),
        Err(NotSubmitted::Unknown) => return AttemptEnd::Dropped,
        Err(NotSubmitted::Refused(message)) => {
            return ended(TaskEnd::failed(FailureKind::SpawnFailed, message), None, Vec::new());
        }
    };
    shared.report(&WorkerEvent::Started { task: control.log_name.clone(), local: local.to_string() });
    match follow(shared, control, &local) {
        Followed::Ended { end, warnings } => ended(end, Some(local), warnings),
        Followed::GivenUp(cause) => AttemptEnd::GivenUp(cause),
        Followed::Dropped => AttemptEnd::Dropped,
    }
}

/// About a minute.
const MAX_SUBMIT_FAILURES: u32 = 16;

impl LocalRequest {
    pub(crate) fn new(control: &AttemptControl, spec: &TaskSpec, working_dir: PathBuf) -> LocalRequest {
        LocalRequest {
            idempotency_key: format!("fleet:{}:{}", control.claim.task, control.claim.attempt),
            working_dir,
            mode: spec.mode,
            text: spec.text.clone(),
            title: spec.title.clone(),
            labels: spec.labels.clone(),
        }
    }
}

#[derive(Debug)]
pub(crate) enum NotSubmitted {
    /// The attempt shall stop, and was not submitted.
    Stopped,
    /// Whether there is one was not found out before the attempt was lost or the worker was stopped for good.
    Unknown,
    Refused(String),
}

/// The task of this attempt, also if it has ended; submits it if there is none. Only then the configuration
/// of this machine matters: a task that runs already is followed, whatever has changed since.
pub(crate) fn find_or_submit(
    shared: &WorkerState<'_>,
    control: &AttemptControl,
    request: &LocalRequest,
) -> Result<TaskId, NotSubmitted> {
    if let Some(known) = find(shared, control, request)? {
        return Ok(known);
    }
    if control.stop().is_some() {
        return Err(NotSubmitted::Stopped);
    }
    match submit(shared, control, request) {
        Ok(local) => Ok(local),
        // The task may have been stored before the error.
        Err(message) => find(shared, control, request)?.ok_or_else(|| {
            // The submitter reads it on another machine.
            let message = format!("the worker {} did not start the task: {message}", shared.settings.name);
            NotSubmitted::Refused(message)
        }),
    }
}

fn find(
    shared: &WorkerState<'_>,
    control: &AttemptControl,
    request: &LocalRequest,
) -> Result<Option<TaskId>, NotSubmitted> {
    let key = Idempotency::new(&request.idempotency_key, &request.idempotency_key);
    repeat_local(shared, control, || shared.engine.results().task_with_key(&key)).ok_or(NotSubmitted::Unknown)
}

/// Submits the task here. A busy registry or a full disk may be over soon, and the idempotency key makes it
/// safe to repeat.
fn submit(
    shared: &WorkerState<'_>,
    control: &AttemptControl,
    request: &LocalRequest,
) -> Result<TaskId, String> {
    let mut submission = shared.port.build_submission(request)?;
    submission.settings.worker_contact = Some(shared.contact());
    let (task, mut failures) = (&control.log_name, 0);
    loop {
        match shared.engine.submissions().submit(submission.clone()) {
            Ok(submitted) => {
                if submitted.queue_paused {
                    shared.report_problem(format!("{task} waits: the queue of this machine is paused"));
                }
                if let Some(pause) = &submitted.agent_pause {
                    let reason = format!("the agent {} is paused: {}", pause.agent, pause.reason);
                    shared.report_problem(format!("{task} waits: {reason}"));
                }
                return Ok(submitted.task.id);
            }
            Err(error) if is_temporary(&error) && failures < MAX_SUBMIT_FAILURES => {
                failures += 1;
                control.pause(back_off(failures));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn is_temporary(error: &EngineError) -> bool {
    use RegistryError::{Busy, Database, DiskFull, File};
    matches!(
        error,
        EngineError::Registry(Busy { .. } | DiskFull { .. } | File { .. } | Database { .. })
            | EngineError::Io { .. }
    )
}
