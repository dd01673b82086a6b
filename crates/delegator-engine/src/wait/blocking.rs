//! Waits for tasks in the calling thread, with progress. For many waits in one process see
//! [`super::wait_thread`].

use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_registry::Task;

use super::task_watch::TaskWatch;
use super::wait_loop::{GroupWaitOutcome, TaskProgress, Wait, WaitGoal, WaitLoop};
use crate::Waits;
use crate::error::{EngineError, Result};

/// How often [`Waits::for_task`] reports progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct WaitOutcome {
    pub task: Task,
    /// The deadline passed before the task ended.
    pub expired: bool,
}

impl Waits<'_> {
    /// Waits until the task has ended or the deadline has passed. Calls `on_progress` about once a second.
    pub fn for_task(
        &self,
        id: &TaskId,
        deadline: Option<Instant>,
        mut on_progress: impl FnMut(&TaskProgress<'_>),
    ) -> Result<WaitOutcome> {
        let wait = Wait { ids: vec![id.clone()], goal: WaitGoal::All, deadline };
        let GroupWaitOutcome { mut tasks, expired } =
            self.run_wait(&wait, PROGRESS_INTERVAL, |wait_loop| {
                on_progress(&wait_loop.progress(id)?);
                Ok::<(), EngineError>(())
            })?;
        let task = tasks.pop().ok_or_else(|| EngineError::unknown(id))?;
        Ok(WaitOutcome { task, expired })
    }

    /// Calls `on_interval` at once and then at this interval; its error ends the wait.
    pub fn with_interval<E: From<EngineError>>(
        &self,
        id: &TaskId,
        interval: Duration,
        mut on_interval: impl FnMut() -> Result<(), E>,
    ) -> Result<Task, E> {
        let wait = Wait { ids: vec![id.clone()], goal: WaitGoal::All, deadline: None };
        let mut outcome = self.run_wait(&wait, interval, |_| on_interval())?;
        Ok(outcome.tasks.pop().ok_or_else(|| EngineError::unknown(id))?)
    }

    /// Waits until the goal is reached or the deadline has passed. Calls `on_interval` about once a second.
    pub fn for_group(
        &self,
        ids: &[TaskId],
        goal: WaitGoal,
        deadline: Option<Instant>,
        mut on_interval: impl FnMut(),
    ) -> Result<GroupWaitOutcome> {
        self.run_wait(&Wait { ids: ids.to_vec(), goal, deadline }, PROGRESS_INTERVAL, |_| {
            on_interval();
            Ok(())
        })
    }

    /// Calls `on_change` at once, then at every change of the registry and at least at this interval, as long as
    /// it returns true.
    pub fn for_changes<E: From<EngineError>>(
        &self,
        interval: Duration,
        mut on_change: impl FnMut() -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut wait_loop = WaitLoop::new();
        loop {
            // Before the call, so that a change during it is not missed.
            wait_loop.refresh(self.engine)?;
            if !on_change()? {
                return Ok(());
            }
            wait_loop.pause(self.engine, Instant::now() + interval, None, true)?;
        }
    }

    /// Like [`Waits::for_changes`], and queries the providers of all unfinished remote tasks meanwhile.
    pub(crate) fn for_live_view(
        &self,
        interval: Duration,
        mut on_change: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let mut wait_loop = WaitLoop::new();
        loop {
            wait_loop.refresh(self.engine)?;
            if !on_change()? {
                return Ok(());
            }
            wait_loop.query_providers(self.engine)?;
            wait_loop.pause(self.engine, Instant::now() + interval, None, true)?;
        }
    }

    fn run_wait<E: From<EngineError>>(
        &self,
        wait: &Wait,
        interval: Duration,
        mut on_progress: impl FnMut(&mut WaitLoop) -> Result<(), E>,
    ) -> Result<GroupWaitOutcome, E> {
        let mut wait_loop = WaitLoop::new();
        let mut next_progress = Instant::now();
        loop {
            wait_loop.refresh(self.engine)?;
            let now = Instant::now();
            if let Some(outcome) = wait_loop.outcome(wait, now) {
                return Ok(outcome?);
            }
            if now >= next_progress {
                next_progress = now + interval;
                on_progress(&mut wait_loop)?;
            }
            let until = wait.deadline.unwrap_or(next_progress).min(next_progress);
            wait_loop.pause(self.engine, until, None, false)?;
        }
    }

    /// Waits until the agent has announced its thread, the task has ended, or the deadline has passed.
    pub fn for_thread(&self, id: &TaskId, deadline: Instant) -> Result<Task> {
        let mut watch = TaskWatch::new(self.engine.registry_of(id)?)?;
        loop {
            watch.refresh()?;
            let task = watch.task(id)?.clone();
            if task.thread_id.is_some() || task.state.is_terminal() || Instant::now() >= deadline {
                return Ok(task);
            }
            watch.sleep(deadline, None, true)?;
            // Otherwise a working task is read again only when its supervisor has exited.
            watch.retain(|_| false);
        }
    }
}
