//! Runs one attempt of a task, from the claim to its report.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use delegator_domain::task::{FailureKind, TaskEnd, TaskId};
use delegator_fleet::TaskSpec;
use delegator_registry::{Idempotency, RegistryError, Task};

use super::attempt_control::{AttemptControl, Stop};
use super::attempt_files::{AttemptFiles, PreparedAttempt};
use super::decisions::back_off;
use super::directories::remove_directory;
use super::events_upload::EventsUpload;
use super::finish::report_end;
use super::local_tasks::{end_local_tasks, repeat_local};
use super::port::{LocalRequest, WorkerEvent};
use super::preparation::{failed, prepare, stopped};
use super::shared::Shared;
use crate::error::EngineError;
use crate::submit::worker_contact::CONTACT_LOST;

const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often a lost supervisor is searched for.
const UPKEEP_INTERVAL: Duration = Duration::from_millis(2_500);
/// About a minute.
const MAX_SUBMIT_FAILURES: u32 = 16;

/// What to do with an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Begin,
    /// An earlier process has started it.
    Resume,
    /// Its thread is gone, but the database counts it as running here.
    GiveUp,
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The task has ended: report it.
    Ended(Box<Ended>),
    /// The task goes back to the queue; its agent was not started.
    Released,
    /// The task cannot be continued: report the worker as lost for it.
    GivenUp(String),
    /// The task belongs to others: report nothing.
    Dropped,
}

/// A task that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) end: TaskEnd,
    /// `None` if the repository could not be checked out.
    pub(super) base: Option<PreparedAttempt>,
    /// The task of this machine; `None` if the agent was not started.
    pub(super) local: Option<TaskId>,
    pub(super) setup_output: Option<Vec<u8>>,
    /// What the worker could not do for the task.
    pub(super) warnings: Vec<String>,
}

impl Ended {
    pub(super) fn new(end: TaskEnd) -> Ended {
        Ended { end, base: None, local: None, setup_output: None, warnings: Vec::new() }
    }
}

impl Outcome {
    pub(super) fn internal(error: &EngineError) -> Outcome {
        Outcome::Ended(Box::new(Ended::new(failed(FailureKind::Internal, error.to_string()))))
    }

    /// Whether the task here has ended, as far as the worker knows.
    fn is_ended_here(&self) -> bool {
        matches!(self, Outcome::Ended(ended) if ended.local.is_some())
    }
}

/// Runs an attempt to its end and reports it.
pub(super) fn run_attempt(shared: &Shared<'_>, control: &Arc<AttemptControl>, spec: &TaskSpec, work: Work) {
    let _registration = Registration { shared, control };
    let files = AttemptFiles::new(shared.workspace.attempt(&control.claim));
    let outcome = match work {
        Work::Begin => begin(shared, control, spec, &files),
        Work::Resume => resume(shared, control, spec, &files),
        Work::GiveUp => Outcome::GivenUp("the worker no longer runs the task".to_owned()),
    };
    // The task may be started elsewhere as soon as the fleet knows.
    let is_unused = outcome.is_ended_here() || end_local_tasks(shared, files.dir());
    if !is_unused && shared.signals.is_abandoning() {
        return;
    }
    let is_reported = report_end(shared, control, spec, &files, outcome);
    // What was not reported is found again by the next worker process.
    if is_reported && is_unused {
        remove_checkout(shared, files.dir());
    }
}

pub(super) fn remove_checkout(shared: &Shared<'_>, dir: &Path) {
    if let Err(error) = remove_directory(dir) {
        let message = format!("could not remove {}: {error}", dir.display());
        shared.report(&WorkerEvent::Problem { message });
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

fn begin(shared: &Shared<'_>, control: &AttemptControl, spec: &TaskSpec, files: &AttemptFiles) -> Outcome {
    match prepare(shared, control, spec, files) {
        Ok(prepared) => submit_and_follow(shared, control, spec, files, prepared),
        Err(outcome) => outcome,
    }
}

/// An attempt that was prepared completely has a task here that an earlier process submitted, or is submitted now.
fn resume(shared: &Shared<'_>, control: &AttemptControl, spec: &TaskSpec, files: &AttemptFiles) -> Outcome {
    shared.report(&WorkerEvent::Resumed { task: control.log_name.clone() });
    match files.read_prepared() {
        Ok(Some(prepared)) => submit_and_follow(shared, control, spec, files, prepared),
        Ok(None) => Outcome::GivenUp("the worker was restarted while it prepared the task".to_owned()),
        Err(error) => Outcome::GivenUp(error.to_string()),
    }
}

fn submit_and_follow(
    shared: &Shared<'_>,
    control: &AttemptControl,
    spec: &TaskSpec,
    files: &AttemptFiles,
    prepared: PreparedAttempt,
) -> Outcome {
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
            return ended(failed(FailureKind::SpawnFailed, message), None, Vec::new());
        }
    };
    let event = WorkerEvent::Started { task: control.log_name.clone(), local: local.to_string() };
    shared.report(&event);
    match follow(shared, control, &local) {
        Followed::Ended { end, warnings } => ended(end, Some(local), warnings),
        Followed::GivenUp(cause) => Outcome::GivenUp(cause),
        Followed::Dropped => Outcome::Dropped,
    }
}

impl LocalRequest {
    pub(super) fn new(control: &AttemptControl, spec: &TaskSpec, working_dir: PathBuf) -> LocalRequest {
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

/// Why there is no task here.
#[derive(Debug)]
pub(super) enum NotSubmitted {
    /// The attempt shall stop, and was not submitted.
    Stopped,
    /// Whether there is one was not found out before the attempt was lost or the worker was stopped for good.
    Unknown,
    Refused(String),
}

/// The task of this attempt, also if it has ended; submits it if there is none. Only then the configuration of this machine
/// matters: a task that runs already is followed, whatever has changed since.
pub(super) fn find_or_submit(
    shared: &Shared<'_>,
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
    shared: &Shared<'_>,
    control: &AttemptControl,
    request: &LocalRequest,
) -> Result<Option<TaskId>, NotSubmitted> {
    let key = Idempotency::new(&request.idempotency_key, &request.idempotency_key);
    repeat_local(shared, control, || shared.engine.task_with_key(&key)).ok_or(NotSubmitted::Unknown)
}

/// Submits the task here. A busy registry or a full disk may be over soon, and the idempotency key makes it safe to repeat.
fn submit(shared: &Shared<'_>, control: &AttemptControl, request: &LocalRequest) -> Result<TaskId, String> {
    let mut submission = shared.port.build_submission(request)?;
    submission.settings.worker_contact = Some(shared.contact());
    let mut failures = 0;
    loop {
        match shared.engine.submit(submission.clone()) {
            Ok(submitted) => {
                if submitted.queue_paused {
                    let message = format!("{} waits: the queue of this machine is paused", control.log_name);
                    shared.report(&WorkerEvent::Problem { message });
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

pub(super) enum Followed {
    Ended { end: TaskEnd, warnings: Vec<String> },
    GivenUp(String),
    Dropped,
}

/// Sends the events of the local task until it has ended, and cancels it when the attempt shall stop.
pub(super) fn follow(shared: &Shared<'_>, control: &AttemptControl, local: &TaskId) -> Followed {
    let gone = || Followed::GivenUp(format!("the task {local} is gone from the worker"));
    let dir = match repeat_local(shared, control, || shared.engine.task_dir(local)) {
        Some(Some(dir)) => dir,
        Some(None) => return gone(),
        None => return Followed::Dropped,
    };
    let mut events = EventsUpload::new(shared, control, &dir);
    let mut next_upkeep = Instant::now() + UPKEEP_INTERVAL;
    let mut cancelled_for: Option<Stop> = None;
    let mut has_problem = false;
    let task = loop {
        let is_upkeep_due = Instant::now() >= next_upkeep;
        match poll(shared, control, local, is_upkeep_due, &mut cancelled_for) {
            Ok(task) if task.state.is_terminal() => break task,
            Ok(_) => has_problem = false,
            Err(EngineError::UnknownTask { .. }) => return gone(),
            // The agent still runs: a busy registry or a full disk is no reason to give it up.
            Err(error) if !has_problem => {
                has_problem = true;
                let message = format!("could not read {local}: {error}; trying again");
                shared.report(&WorkerEvent::Problem { message });
            }
            Err(_) => {}
        }
        if is_upkeep_due {
            next_upkeep = Instant::now() + UPKEEP_INTERVAL;
        }
        if shared.signals.is_abandoning() {
            return Followed::Dropped;
        }
        events.send_available();
        control.pause(POLL_INTERVAL);
    };
    let end = match task.ended.map(|ended| ended.end) {
        Some(end) if cancelled_for != Some(Stop::Lost) => end,
        _ => return Followed::Dropped,
    };
    if let Some(cause) = lost_contact(&end, shared.settings.cutoff) {
        return Followed::GivenUp(cause);
    }
    match events.send_rest() {
        Ok(warnings) => Followed::Ended { end, warnings },
        Err(_) => Followed::Dropped,
    }
}

/// Whether the worker or the supervisor ended the task because there was no contact with the fleet. A task that had ended
/// before, or that a user cancelled, is reported as it ended.
pub(super) fn lost_contact(end: &TaskEnd, cutoff: Duration) -> Option<String> {
    let TaskEnd::Cancelled { reason: Some(reason) } = end else { return None };
    (reason == CONTACT_LOST).then(|| {
        let seconds = cutoff.as_secs();
        format!("the worker had no connection to the database for {seconds} s and stopped the agent")
    })
}

/// Reads the task, and cancels it if the attempt shall stop for a reason for which it is not cancelled yet.
fn poll(
    shared: &Shared<'_>,
    control: &AttemptControl,
    local: &TaskId,
    is_upkeep_due: bool,
    cancelled_for: &mut Option<Stop>,
) -> Result<Task, EngineError> {
    let task = match is_upkeep_due {
        true => shared.engine.task(local)?,
        false => shared.engine.recorded_task(local)?,
    };
    let stop = control.stop();
    if stop != *cancelled_for && !task.state.is_terminal() {
        cancel(shared, control, local, stop.as_ref())?;
        *cancelled_for = stop;
    }
    Ok(task)
}

fn cancel(
    shared: &Shared<'_>,
    control: &AttemptControl,
    local: &TaskId,
    stop: Option<&Stop>,
) -> Result<(), EngineError> {
    let reason = match stop {
        None | Some(Stop::Release) => return Ok(()),
        Some(Stop::Cancel { reason }) => reason.clone(),
        Some(Stop::CutOff) => Some(CONTACT_LOST.to_owned()),
        Some(Stop::Lost) => Some("the task no longer belongs to this worker".to_owned()),
    };
    shared.report(&WorkerEvent::Cancelling { task: control.log_name.clone() });
    match shared.engine.request_cancel(local, reason.as_deref()) {
        // The next poll finds its end.
        Err(EngineError::AlreadyEnded { .. }) => Ok(()),
        outcome => outcome,
    }
}
