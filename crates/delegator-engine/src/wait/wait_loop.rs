//! The loop behind every wait: read the tasks, compare them with the goal, make an upkeep pass or sleep.
//! [`super::blocking`] runs it for one wait, [`super::wait_thread`] for all waits of a server.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_registry::{ChangeMark, StoredQuestion, Task};
use delegator_supervisor::run::Snapshot;
use serde::Deserialize;

use super::remote_watch::RemoteWatch;
use super::task_watch::{TaskWatch, sleep_unless_woken};
use crate::Engine;
use crate::error::{EngineError, Result};
use crate::shared::snapshot_file::read_snapshot;
use crate::upkeep::leftovers::remove_orphaned_launches_in_background;
use crate::upkeep::rescue::{UpkeepRegistration, rescue_in};
use crate::upkeep::retention::start_pruning_if_due;

/// How soon to look again for a registry that does not exist.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitGoal {
    /// When the first task has ended.
    Any,
    /// When all tasks have ended.
    #[default]
    All,
}

/// The current state of every task, in the order of the request.
#[derive(Debug)]
pub struct GroupWaitOutcome {
    pub tasks: Vec<Task>,
    /// The deadline passed before the goal was reached.
    pub expired: bool,
}

#[derive(Debug)]
pub struct TaskProgress<'a> {
    pub task: &'a Task,
    pub snapshot: Option<Snapshot>,
}

#[derive(Debug)]
pub(super) struct Wait {
    pub(super) ids: Vec<TaskId>,
    pub(super) goal: WaitGoal,
    pub(super) deadline: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct WaitLoop {
    /// `None` if the registry does not exist.
    watch: Option<TaskWatch>,
    remote: RemoteWatch,
    upkeep: UpkeepSchedule,
    /// The open questions of all tasks, and the change mark of the registry when they were read.
    questions: (Option<ChangeMark>, Vec<(TaskId, StoredQuestion)>),
}

impl WaitLoop {
    pub(super) fn new() -> WaitLoop {
        WaitLoop {
            watch: None,
            remote: RemoteWatch::new(),
            upkeep: UpkeepSchedule::starting_now(),
            questions: (None, Vec::new()),
        }
    }

    pub(super) fn refresh(&mut self, engine: &Engine) -> Result<()> {
        match &mut self.watch {
            Some(watch) => {
                watch.refresh()?;
                self.remote.step(engine, watch.unfinished_remote())
            }
            None => {
                self.watch = engine.find_registry()?.map(TaskWatch::new).transpose()?;
                Ok(())
            }
        }
    }

    /// Queries the providers about all unfinished remote tasks, awaited or not.
    pub(super) fn query_providers(&mut self, engine: &Engine) -> Result<()> {
        let Some(watch) = &self.watch else { return Ok(()) };
        let unfinished = watch.registry.unfinished_remote()?;
        self.remote.step(engine, unfinished.iter())
    }

    pub(super) fn outcome(&mut self, wait: &Wait, now: Instant) -> Option<Result<GroupWaitOutcome>> {
        let read = |id| match &mut self.watch {
            Some(watch) => watch.task(id).cloned(),
            // Without a registry there is no task.
            None => Err(EngineError::unknown(id)),
        };
        let tasks: Vec<Task> = match wait.ids.iter().map(read).collect() {
            Ok(tasks) => tasks,
            Err(error) => return Some(Err(error)),
        };
        if let Some(error) = tasks.iter().find_map(|task| self.remote.error_for(task)) {
            return Some(Err(error));
        }
        let mut ends = tasks.iter().map(|task| task.state.is_terminal());
        let reached = match wait.goal {
            WaitGoal::Any => ends.any(|ended| ended),
            WaitGoal::All => ends.all(|ended| ended),
        };
        let expired = !reached && wait.deadline.is_some_and(|deadline| now >= deadline);
        (reached || expired).then_some(Ok(GroupWaitOutcome { tasks, expired }))
    }

    pub(super) fn progress(&mut self, id: &TaskId) -> Result<TaskProgress<'_>> {
        let watch = self.watch.as_mut().ok_or_else(|| EngineError::unknown(id))?;
        let snapshot = read_snapshot(&watch.registry.dir().task(id))?;
        Ok(TaskProgress { task: watch.task(id)?, snapshot })
    }

    /// Reads them only if the registry has changed.
    pub(super) fn open_questions(&mut self) -> Result<&[(TaskId, StoredQuestion)]> {
        if let Some(watch) = &self.watch
            && self.questions.0 != Some(watch.mark())
        {
            self.questions = (Some(watch.mark()), watch.registry.all_open_questions()?);
        }
        Ok(&self.questions.1)
    }

    pub(super) fn retain(&mut self, is_awaited: impl Fn(&TaskId) -> bool) {
        if let Some(watch) = &mut self.watch {
            watch.retain(is_awaited);
        }
    }

    /// Makes an upkeep pass if one is due. Otherwise sleeps until a task may have changed, `waker` is
    /// readable, or the time has come. With `wake_on_change`, every change of the registry ends the sleep.
    pub(super) fn pause(
        &mut self,
        engine: &Engine,
        until: Instant,
        waker: Option<BorrowedFd<'_>>,
        wake_on_change: bool,
    ) -> Result<()> {
        let Some(watch) = &mut self.watch else { return sleep_unless_woken(RETRY_INTERVAL, waker) };
        if self.upkeep.run_if_due(engine, watch)? {
            Ok(())
        } else {
            watch.sleep(until.min(self.upkeep.next(watch)), waker, wake_on_change)
        }
    }
}

/// A lost supervisor must be noticed within three seconds as long as any process waits.
const PASS_INTERVAL: Duration = Duration::from_millis(2_500);
/// How soon to look again for a supervisor that holds its lock in another pid namespace.
const MISSING_RETRY_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct UpkeepSchedule {
    next: Instant,
    next_if_supervisor_missing: Instant,
    /// Set from the first pass on.
    registration: Option<UpkeepRegistration>,
}

impl UpkeepSchedule {
    fn starting_now() -> UpkeepSchedule {
        let now = Instant::now();
        UpkeepSchedule { next: now, next_if_supervisor_missing: now, registration: None }
    }

    fn next(&self, watch: &TaskWatch) -> Instant {
        if watch.has_missing_supervisor() {
            self.next.min(self.next_if_supervisor_missing)
        } else {
            self.next
        }
    }

    /// Makes a pass if one is due; returns whether it did.
    fn run_if_due(&mut self, engine: &Engine, watch: &mut TaskWatch) -> Result<bool> {
        if Instant::now() < self.next(watch) {
            return Ok(false);
        }
        rescue_in(engine, &mut watch.registry)?;
        self.registration.get_or_insert_with(|| UpkeepRegistration::register(&engine.state_dir));
        start_pruning_if_due(engine, &mut watch.registry)?;
        remove_orphaned_launches_in_background(engine, &mut watch.registry)?;
        let now = Instant::now();
        (self.next, self.next_if_supervisor_missing) = (now + PASS_INTERVAL, now + MISSING_RETRY_INTERVAL);
        Ok(true)
    }
}
