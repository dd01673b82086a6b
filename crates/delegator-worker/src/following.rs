//! Follows the task of this machine that runs for an attempt: sends its events, and cancels it when the
//! attempt shall stop.

use std::time::{Duration, Instant};

use delegator_domain::task::{TaskEnd, TaskId};
use delegator_engine::{CONTACT_LOST, EngineError};
use delegator_registry::Task;

use crate::attempt_control::{AttemptControl, NOT_OWNED, Stop};
use crate::events_upload::EventsUpload;
use crate::local_tasks::repeat_local;
use crate::port::WorkerEvent;
use crate::shared::Shared;

const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often a lost supervisor is searched for.
const UPKEEP_INTERVAL: Duration = Duration::from_millis(2_500);

pub(crate) enum Followed {
    Ended { end: TaskEnd, warnings: Vec<String> },
    GivenUp(String),
    Dropped,
}

/// Sends the events of the local task until it has ended, and cancels it when the attempt shall stop.
pub(crate) fn follow(shared: &Shared<'_>, control: &AttemptControl, local: &TaskId) -> Followed {
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

/// Whether the worker or the supervisor ended the task because there was no contact with the fleet. A task
/// that had ended before, or that a user cancelled, is reported as it ended.
pub(crate) fn lost_contact(end: &TaskEnd, cutoff: Duration) -> Option<String> {
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
    let task = if is_upkeep_due { shared.engine.task(local)? } else { shared.engine.recorded_task(local)? };
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
        Some(Stop::Lost) => Some(NOT_OWNED.to_owned()),
    };
    shared.report(&WorkerEvent::Cancelling { task: control.log_name.clone() });
    match shared.engine.request_cancel(local, reason.as_deref()) {
        // The next poll finds its end.
        Err(EngineError::AlreadyEnded { .. }) => Ok(()),
        outcome => outcome,
    }
}
