//! Follows the events of a task that a provider runs: a thread copies them until the task has ended, and the
//! reader watches the events file. A provider that does not answer is queried again for a while, as by a
//! wait.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_registry::{Registry, Task, TaskFile};

use super::event_mirror::{MirrorPass, mirror_pass};
use super::refresh::refresh_remote;
use crate::error::{EngineError, Result};
use crate::{Engine, RemoteTasks};

/// How soon to look for new events after some arrived, and at last if none arrive.
const MIN_INTERVAL: Duration = Duration::from_millis(200);
const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// How soon to try again after a provider did not answer, and for how long.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
const MAX_OUTAGE: Duration = Duration::from_secs(120);

/// Copies events until it is dropped or the task has ended.
#[derive(Debug)]
pub struct EventFollower {
    thread: Option<JoinHandle<Result<()>>>,
    /// Dropping it stops the thread.
    _stop: Sender<()>,
}

impl RemoteTasks<'_> {
    /// Starts to copy the events of a task. `None` for a task of this machine.
    pub fn follow_events(&self, task: &Task) -> Result<Option<EventFollower>> {
        if task.remote.is_none() {
            return Ok(None);
        }
        self.check_events(task)?;
        let (stop, stopped) = channel();
        let (engine, id) = (self.engine.clone(), task.id.clone());
        let thread = std::thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || Follow { engine, id, stopped }.run())
            .map_err(EngineError::io("start a thread"))?;
        Ok(Some(EventFollower { thread: Some(thread), _stop: stop }))
    }
}

impl EventFollower {
    /// Whether the task has ended and all its events are copied. An error if they cannot be copied.
    pub fn has_ended(&mut self) -> Result<bool> {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(false);
        }
        let panicked = |_| EngineError::WatchFailed {
            detail: "the thread that copies events panicked".to_owned(),
            os_error: None,
        };
        self.thread.take().map_or(Ok(()), |thread| thread.join().map_err(panicked)?)?;
        Ok(true)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FollowStep {
    NothingNew,
    NewEvents,
    Complete,
}

struct Follow {
    engine: Engine,
    id: TaskId,
    stopped: Receiver<()>,
}

impl Follow {
    fn run(self) -> Result<()> {
        let mut registry = self.engine.registry_of(&self.id)?;
        let (mut interval, mut answered_at) = (MIN_INTERVAL, Instant::now());
        loop {
            match self.step(&mut registry) {
                Ok(FollowStep::Complete) => return Ok(()),
                Ok(step) => {
                    answered_at = Instant::now();
                    let is_active = step == FollowStep::NewEvents;
                    interval = if is_active { MIN_INTERVAL } else { (interval * 2).min(MAX_INTERVAL) };
                }
                Err(EngineError::Provider { source, .. })
                    if source.is_transient() && answered_at.elapsed() < MAX_OUTAGE =>
                {
                    interval = RETRY_INTERVAL;
                }
                Err(error) => return Err(error),
            }
            if self.stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                return Ok(());
            }
        }
    }

    /// The state is read before the events, so that those of an ended task are complete.
    fn step(&self, registry: &mut Registry) -> Result<FollowStep> {
        let unknown = || EngineError::unknown(&self.id);
        let dir = registry.dir().task(&self.id);
        let size_before = dir.size(TaskFile::Events)?;
        let mut task = registry.get(&self.id)?.ok_or_else(unknown)?;
        if !task.state.is_terminal() {
            let problems = refresh_remote(&self.engine, registry, std::slice::from_ref(&task))?;
            if let Some(problem) = problems.first() {
                return Err(problem.for_task(&self.id));
            }
            task = registry.get(&self.id)?.ok_or_else(unknown)?;
        }
        let pass = mirror_pass(&self.engine, &dir, &task, usize::MAX)?;
        if pass == MirrorPass::Complete && task.state.is_terminal() {
            return Ok(FollowStep::Complete);
        }
        let is_new = dir.size(TaskFile::Events)? != size_before;
        Ok(if is_new { FollowStep::NewEvents } else { FollowStep::NothingNew })
    }
}
