//! Waits for tasks in the calling thread. For many waits in one process see [`super::wait_thread`].
//!
//! While it waits, the call makes upkeep passes: every few seconds, and when a supervisor that it watches is lost.

use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_registry::Task;
use delegator_supervisor::run::Snapshot;

use super::task_watch::TaskWatch;
use super::upkeep_schedule::UpkeepSchedule;
use crate::Engine;
use crate::error::EngineError;
use crate::supervise::snapshot_file::read_snapshot;

/// Short, because the response to a submission waits for the thread id.
const THREAD_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How often progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct WaitOutcome {
    pub task: Task,
    /// The deadline passed, or the caller stopped, before the task ended.
    pub expired: bool,
}

#[derive(Debug)]
pub struct TaskProgress<'a> {
    pub task: &'a Task,
    /// The supervisor's last snapshot, if there is one.
    pub snapshot: Option<Snapshot>,
}

impl Engine {
    /// Waits until the task has ended or the deadline has passed. Calls `on_progress` about once a second; it returns
    /// `false` to stop waiting.
    pub fn wait(
        &self,
        id: &TaskId,
        deadline: Option<Instant>,
        mut on_progress: impl FnMut(&TaskProgress<'_>) -> bool,
    ) -> Result<WaitOutcome, EngineError> {
        let first = self.wait_for_first(std::slice::from_ref(id), deadline, |watch| {
            let snapshot = read_snapshot(&watch.registry.dir().task(id))?;
            Ok(on_progress(&TaskProgress { task: watch.task(id)?, snapshot }))
        });
        Ok(first?.0)
    }

    /// Waits until the first of several tasks has ended. Also returns the ids of those that have not. If none ends before
    /// the deadline, returns the first one in its current state.
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

    /// Waits until the agent has announced its thread, the task has ended, or the deadline has passed.
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
                self.system.sleep(THREAD_POLL_INTERVAL);
            }
        }
    }
}
