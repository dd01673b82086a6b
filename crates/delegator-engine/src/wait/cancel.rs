//! Cancels tasks: stores the request durably, wakes the supervisor, and waits for the end.
//!
//! Only the supervisor ends a running task; a queued task is cancelled in the registry at once.

use std::time::{Duration, Instant};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{State, TaskId};
use delegator_registry::{CancelOutcome, Filter, Registry, Task};

use crate::Engine;
use crate::error::EngineError;
use crate::results::overview::unfinished_tasks;
use crate::supervise::wake_socket;

#[derive(Debug)]
pub struct CancelReport {
    pub task: Task,
    pub previous: State,
    /// The task did not end before the timeout.
    pub still_ending: bool,
}

impl Engine {
    /// Cancels a task and waits for its end.
    pub fn cancel(
        &self,
        id: &TaskId,
        reason: Option<&str>,
        timeout: Duration,
    ) -> Result<CancelReport, EngineError> {
        let unknown = || EngineError::UnknownTask { given: id.to_string() };
        let mut registry = self.find_registry()?.ok_or_else(unknown)?;
        let previous = self.store_cancel_request(&mut registry, id, reason)?;
        // A queued task that is cancelled may have blocked others.
        self.promote(&mut registry).map_err(EngineError::in_cleanup)?;
        let outcome =
            self.wait(id, Some(Instant::now() + timeout), |_| {}).map_err(EngineError::in_cleanup)?;
        Ok(CancelReport { task: outcome.task, previous, still_ending: outcome.expired })
    }

    /// Stores the request and returns without waiting.
    pub fn request_cancel(&self, id: &TaskId, reason: Option<&str>) -> Result<(), EngineError> {
        let unknown = || EngineError::UnknownTask { given: id.to_string() };
        let mut registry = self.find_registry()?.ok_or_else(unknown)?;
        self.store_cancel_request(&mut registry, id, reason)?;
        self.promote(&mut registry)
    }

    /// The unfinished tasks that pass a filter, newest first.
    pub fn unfinished_tasks(&self, filter: &Filter) -> Result<Vec<Task>, EngineError> {
        self.find_registry()?.map_or_else(|| Ok(Vec::new()), |registry| unfinished_tasks(&registry, filter))
    }

    /// Cancels many tasks: stores all requests first, then waits. One result per id, in the same order; the failure of one
    /// does not affect the others.
    pub fn cancel_all(
        &self,
        ids: &[TaskId],
        reason: Option<&str>,
        timeout: Duration,
    ) -> Result<Vec<Result<CancelReport, EngineError>>, EngineError> {
        let Some(mut registry) = self.find_registry()? else {
            let unknown = |id: &TaskId| Err(EngineError::UnknownTask { given: id.to_string() });
            return Ok(ids.iter().map(unknown).collect());
        };
        let requested: Vec<Result<State, EngineError>> =
            ids.iter().map(|id| self.store_cancel_request(&mut registry, id, reason)).collect();
        self.promote(&mut registry).map_err(EngineError::in_cleanup)?;
        let deadline = Instant::now() + timeout;
        let wait = |(id, requested): (&TaskId, Result<State, EngineError>)| {
            let previous = requested?;
            let outcome = self.wait(id, Some(deadline), |_| {}).map_err(EngineError::in_cleanup)?;
            Ok(CancelReport { task: outcome.task, previous, still_ending: outcome.expired })
        };
        Ok(ids.iter().zip(requested).map(wait).collect())
    }

    /// Stores the request and wakes the supervisor; returns the state of the task before.
    pub(crate) fn store_cancel_request(
        &self,
        registry: &mut Registry,
        id: &TaskId,
        reason: Option<&str>,
    ) -> Result<State, EngineError> {
        match registry.request_cancel(id, reason, self.now_ms())? {
            CancelOutcome::Unknown => Err(EngineError::UnknownTask { given: id.to_string() }),
            CancelOutcome::Cancelled => Ok(State::Queued),
            CancelOutcome::AlreadyEnded { state: State::Cancelled } => state_before_cancel(registry, id),
            CancelOutcome::AlreadyEnded { state } => {
                Err(EngineError::AlreadyEnded { task: id.clone(), state })
            }
            CancelOutcome::Requested { state, .. } => {
                wake_socket::wake(&registry.dir().task(id));
                crash_point(CrashPoint::SupervisorWoken);
                Ok(state)
            }
        }
    }
}

/// A repeated cancel returns the same state as the first one.
fn state_before_cancel(registry: &Registry, id: &TaskId) -> Result<State, EngineError> {
    let unknown = || EngineError::UnknownTask { given: id.to_string() };
    let task = registry.get(id)?.ok_or_else(unknown)?;
    Ok(if task.claimed_at_ms.is_some() { State::Working } else { State::Queued })
}
