//! Cancels tasks: stores the request durably, wakes the supervisor, and waits for the end. Only the
//! supervisor ends a running task, and only the provider one that it runs; a queued task is cancelled in the
//! registry.

use std::time::{Duration, Instant};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{State, TaskId};
use delegator_registry::{CancelOutcome, Registry, Task};

use crate::error::{EngineError, Result};
use crate::remote::provider::CancelProgress;
use crate::remote::refresh::request_remote_cancel;
use crate::submit::promote::promote;
use crate::supervise::wake_socket;
use crate::upkeep::delivery::start_delivery_if_due;
use crate::wait::blocking::WaitOutcome;
use crate::{Cancellations, Engine};

/// A task that ended in another state is [`EngineError::AlreadyEnded`].
#[derive(Debug)]
pub struct CancelReport {
    pub task: Task,
    pub previous: State,
    /// The task was cancelled before this call.
    pub was_cancelled: bool,
    /// The task did not end before the timeout.
    pub still_ending: bool,
}

/// A stored cancel request, and the task before it.
pub(crate) struct Requested {
    previous: State,
    was_cancelled: bool,
}

impl Cancellations<'_> {
    pub fn cancel(&self, id: &TaskId, reason: Option<&str>, timeout: Duration) -> Result<CancelReport> {
        let mut reports = self.cancel_all(std::slice::from_ref(id), reason, timeout)?;
        reports.pop().unwrap_or_else(|| Err(EngineError::unknown(id)))
    }

    /// Stores the request and returns without waiting.
    pub fn request(&self, id: &TaskId, reason: Option<&str>) -> Result<()> {
        let mut registry = self.engine.registry_of(id)?;
        store_cancel_request(self.engine, &mut registry, id, reason)?;
        promote_after_cancel(self.engine, &mut registry);
        Ok(())
    }

    /// Stores all requests first, then waits. One result per id, in the same order; the failure of one does
    /// not affect the others.
    pub fn cancel_all(
        &self,
        ids: &[TaskId],
        reason: Option<&str>,
        timeout: Duration,
    ) -> Result<Vec<Result<CancelReport>>> {
        let Some(mut registry) = self.engine.find_registry()? else {
            return Ok(ids.iter().map(|id| Err(EngineError::unknown(id))).collect());
        };
        // The request for a task also cancels those that follow it, which may be in the list, too.
        let states: Vec<Option<State>> =
            ids.iter().map(|id| Ok(registry.get(id)?.map(|task| task.state))).collect::<Result<_>>()?;
        let request = |(id, state): (&TaskId, Option<State>)| {
            let requested = store_cancel_request(self.engine, &mut registry, id, reason)?;
            Ok(Requested { was_cancelled: state == Some(State::Cancelled), ..requested })
        };
        let requested: Vec<Result<Requested>> = ids.iter().zip(states).map(request).collect();
        promote_after_cancel(self.engine, &mut registry);
        let deadline = Instant::now() + timeout;
        let wait = |(id, requested): (&TaskId, Result<Requested>)| {
            let requested = requested?;
            let outcome =
                self.engine.waits().for_task(id, Some(deadline), |_| {}).map_err(EngineError::in_cleanup)?;
            report(outcome, requested)
        };
        Ok(ids.iter().zip(requested).map(wait).collect())
    }
}

/// Starts tasks that a cancelled queued task has blocked, and the delivery of its notifications.
fn promote_after_cancel(engine: &Engine, registry: &mut Registry) {
    // The requests are stored. If this fails, the next pass starts them.
    let _ = promote(engine, registry);
    let _ = start_delivery_if_due(engine, registry);
}

pub(crate) fn store_cancel_request(
    engine: &Engine,
    registry: &mut Registry,
    id: &TaskId,
    reason: Option<&str>,
) -> Result<Requested> {
    let first = |previous| Ok(Requested { previous, was_cancelled: false });
    let remote = request_remote_cancel(engine, registry, id, reason)?;
    match registry.request_cancel(id, reason, engine.now_ms())? {
        CancelOutcome::Unknown => Err(EngineError::unknown(id)),
        CancelOutcome::Cancelled => first(State::Queued),
        CancelOutcome::AlreadyEnded { state: State::Cancelled } => {
            Ok(Requested { previous: state_before_cancel(registry, id)?, was_cancelled: true })
        }
        CancelOutcome::AlreadyEnded { state } => Err(EngineError::AlreadyEnded { task: id.clone(), state }),
        CancelOutcome::Requested { state, .. } => {
            wake_socket::wake(&registry.dir().task(id));
            crash_point(CrashPoint::SupervisorWoken);
            // The recorded state of a task that a provider runs may be older than its start.
            first(if remote == Some(CancelProgress::Ending) { State::Working } else { state })
        }
    }
}

/// The state that was recorded first is final, so the task may have ended in another one.
fn report(outcome: WaitOutcome, requested: Requested) -> Result<CancelReport> {
    let WaitOutcome { task, expired: still_ending } = outcome;
    let Requested { previous, was_cancelled } = requested;
    match task.state {
        state if state.is_terminal() && state != State::Cancelled => {
            Err(EngineError::AlreadyEnded { task: task.id, state })
        }
        _ => Ok(CancelReport { task, previous, was_cancelled, still_ending }),
    }
}

/// A repeated cancel returns the same state as the first one.
fn state_before_cancel(registry: &Registry, id: &TaskId) -> Result<State> {
    let task = registry.get(id)?.ok_or_else(|| EngineError::unknown(id))?;
    Ok(if task.claimed_at_ms.is_some() { State::Working } else { State::Queued })
}
