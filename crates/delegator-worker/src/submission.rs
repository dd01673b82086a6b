//! Submits the task of an attempt to the registry of this machine, or finds the one that an earlier process
//! submitted.

use std::path::PathBuf;

use delegator_domain::task::TaskId;
use delegator_engine::EngineError;
use delegator_fleet::TaskSpec;
use delegator_registry::{Idempotency, RegistryError};

use crate::attempt_control::AttemptControl;
use crate::decisions::back_off;
use crate::local_tasks::repeat_local;
use crate::port::{LocalRequest, WorkerEvent};
use crate::shared::Shared;

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

/// Submits the task here. A busy registry or a full disk may be over soon, and the idempotency key makes it
/// safe to repeat.
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
                if let Some(pause) = &submitted.agent_pause {
                    let reason = format!("the agent {} is paused: {}", pause.agent, pause.reason);
                    let message = format!("{} waits: {reason}", control.log_name);
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
