//! Waiting for an end in the thread of whoever asks. For many who ask in one process see [`crate::resident`].
//!
//! A waiter looks after the others, too: it makes a rescue-and-promotion pass when a supervisor it watches is lost, and
//! every few seconds.

use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_registry::Task;
use serde_json::Value;

use super::task_watch::TaskWatch;
use super::upkeep_schedule::UpkeepSchedule;
use crate::Engine;
use crate::clock::sleep;
use crate::error::EngineError;

/// A submission is answered when the thread is known, and somebody waits for the answer.
const THREAD_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How often a waiter tells how far things are.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// How waiting ended.
#[derive(Debug)]
pub struct WaitOutcome {
    pub task: Task,
    /// The time was over first.
    pub expired: bool,
}

/// How far a task is.
#[derive(Debug)]
pub struct TaskProgress<'a> {
    pub task: &'a Task,
    /// The supervisor's last snapshot, if there is one.
    pub snapshot: Option<Value>,
}

impl Engine {
    /// Until the task has ended or the deadline has passed. `told` hears how far it is about once a second, and may
    /// end the wait by saying `false`.
    pub fn wait(
        &self,
        id: &TaskId,
        deadline: Option<Instant>,
        mut on_progress: impl FnMut(&TaskProgress<'_>) -> bool,
    ) -> Result<WaitOutcome, EngineError> {
        let first = self.wait_for_first(std::slice::from_ref(id), deadline, |watch| {
            let snapshot = watch.registry.dir().task(id).read_snapshot()?;
            let snapshot = snapshot.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            Ok(on_progress(&TaskProgress { task: watch.task(id)?, snapshot }))
        });
        Ok(first?.0)
    }

    /// Until the first of several has ended, and those that have not. With none of them ended in time, the first one
    /// as it stands.
    pub fn wait_any(
        &self,
        ids: &[TaskId],
        deadline: Option<Instant>,
    ) -> Result<(WaitOutcome, Vec<TaskId>), EngineError> {
        self.wait_for_first(ids, deadline, |_| Ok(true))
    }

    fn wait_for_first(
        &self,
        ids: &[TaskId],
        deadline: Option<Instant>,
        mut on_progress: impl FnMut(&mut TaskWatch) -> Result<bool, EngineError>,
    ) -> Result<(WaitOutcome, Vec<TaskId>), EngineError> {
        let first = ids.first().ok_or_else(|| EngineError::UnknownTask { given: String::new() })?;
        let registry =
            self.find_registry()?.ok_or_else(|| EngineError::UnknownTask { given: first.to_string() })?;
        let mut watch = TaskWatch::new(registry)?;
        let mut upkeep = UpkeepSchedule::starting_now();
        let mut next_progress = Instant::now();
        loop {
            let mut pending = Vec::new();
            let mut ended = None;
            for id in ids {
                let task = watch.task(id)?;
                if !task.state.is_terminal() {
                    pending.push(id.clone());
                } else if ended.is_none() {
                    ended = Some(task.clone());
                }
            }
            if let Some(task) = ended {
                return Ok((WaitOutcome { task, expired: false }, pending));
            }
            let now = Instant::now();
            let mut is_over = deadline.is_some_and(|deadline| now >= deadline);
            if !is_over && now >= next_progress {
                next_progress = now + PROGRESS_INTERVAL;
                is_over = !on_progress(&mut watch)?;
            }
            if is_over {
                return Ok((WaitOutcome { task: watch.task(first)?.clone(), expired: true }, pending));
            }
            if !upkeep.run_if_due(self, &mut watch)? {
                let until = deadline.unwrap_or(next_progress).min(next_progress);
                watch.sleep(until.min(upkeep.next(&watch)), None)?;
            }
            watch.refresh()?;
        }
    }

    /// Until the agent has announced its thread, or the task is over, or the deadline has passed.
    pub fn wait_for_thread(&self, id: &TaskId, deadline: Instant) -> Result<Task, EngineError> {
        let unknown = || EngineError::UnknownTask { given: id.to_string() };
        let registry = self.find_registry()?.ok_or_else(unknown)?;
        loop {
            let mark = registry.change_mark()?;
            let task = registry.get(id)?.ok_or_else(unknown)?;
            if task.thread_id.is_some() || task.state.is_terminal() || Instant::now() >= deadline {
                return Ok(task);
            }
            while Instant::now() < deadline && registry.change_mark()? == mark {
                sleep(THREAD_POLL_INTERVAL)?;
            }
        }
    }
}
