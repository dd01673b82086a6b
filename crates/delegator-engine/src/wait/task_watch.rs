//! Notices changes of any number of tasks in one thread.
//!
//! A supervisor announces changes of its task to long-running processes ([`ChangeEvents`]). A working task is
//! watched through the pidfd of its supervisor, too (verified by its start time): it becomes readable when
//! the supervisor exits or is killed. For a task that has not begun, the change mark of the registry is
//! compared in addition, which reads no table. The order is fixed, so that no change is missed: take the
//! mark, watch the directory, read the rows, open the pidfds, sleep.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use delegator_domain::task::{State, TaskId};
use delegator_registry::{ChangeMark, Registry, Task};
use delegator_supervisor::process::ProcessHandle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::change_events::ChangeEvents;
use crate::error::{EngineError, Result};
use crate::shared::connection_pool::PooledConnection;
use crate::shared::task_of_process::process_identity;

/// The change mark is compared at the longest interval if there are events. Without them, the interval is a
/// sixteenth of the time since the wait began, within these bounds.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct TaskWatch {
    pub(crate) registry: PooledConnection,
    mark: ChangeMark,
    watched: HashMap<TaskId, WatchedTask>,
    /// The events of the watched tasks; `None` in a short-lived process.
    events: Option<ChangeEvents>,
    since: Instant,
}

#[derive(Debug)]
struct WatchedTask {
    task: Task,
    supervision: Supervision,
}

#[derive(Debug)]
enum Supervision {
    /// The pidfd is readable when the supervisor has exited.
    Alive(ProcessHandle),
    /// The task is queued, starting or ended, or a provider runs it.
    NoSupervisor,
    /// The supervisor in the row does not exist: it has just exited, or it is lost.
    Missing,
}

impl TaskWatch {
    pub(crate) fn new(registry: PooledConnection) -> Result<TaskWatch> {
        let mark = registry.change_mark()?;
        let events = registry.is_long_running().then(ChangeEvents::new).flatten();
        Ok(TaskWatch { mark, registry, watched: HashMap::new(), events, since: Instant::now() })
    }

    /// The task as last read; reads it now if it is not watched yet.
    pub(crate) fn task(&mut self, id: &TaskId) -> Result<&Task> {
        if !self.watched.contains_key(id) {
            if let Some(events) = &mut self.events {
                events.watch(&self.registry.dir().task(id));
            }
            let watched = read(&self.registry, id)?;
            self.watched.insert(id.clone(), watched);
        }
        self.watched.get(id).map(|watched| &watched.task).ok_or_else(|| EngineError::unknown(id))
    }

    pub(crate) fn mark(&self) -> ChangeMark {
        self.mark
    }

    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&TaskId) -> bool) {
        self.watched.retain(|id, _| is_wanted(id));
        if let Some(events) = &mut self.events {
            events.retain(is_wanted);
        }
    }

    pub(crate) fn unfinished_remote(&self) -> impl Iterator<Item = &Task> {
        let tasks = self.watched.values().map(|watched| &watched.task);
        tasks.filter(|task| task.remote.is_some() && !task.state.is_terminal())
    }

    pub(crate) fn has_missing_supervisor(&self) -> bool {
        self.watched.values().any(|watched| matches!(watched.supervision, Supervision::Missing))
    }

    pub(crate) fn refresh(&mut self) -> Result<()> {
        let announced = self.events.as_ref().map(ChangeEvents::take_changed).unwrap_or_default();
        let mark = self.registry.change_mark()?;
        let changed = mark != self.mark;
        self.mark = mark;
        let mut gone = Vec::new();
        for (id, watched) in &mut self.watched {
            let is_due = match &watched.supervision {
                _ if watched.task.state.is_terminal() => false,
                _ if announced.contains(id) => true,
                Supervision::Alive(handle) => handle.wait_until(Instant::now()).map_err(watch_error)?,
                Supervision::NoSupervisor => changed,
                Supervision::Missing => true,
            };
            if is_due {
                match read(&self.registry, id) {
                    Ok(current) => *watched = current,
                    Err(EngineError::UnknownTask { .. }) => gone.push(id.clone()),
                    Err(error) => return Err(error),
                }
            }
        }
        // A later query for a deleted task fails with `UnknownTask`.
        gone.iter().for_each(|id| drop(self.watched.remove(id)));
        Ok(())
    }

    fn poll_interval(&self) -> Duration {
        match self.events {
            Some(_) => MAX_POLL_INTERVAL,
            None => (self.since.elapsed() / 16).clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL),
        }
    }

    pub(crate) fn sleep(
        &self,
        until: Instant,
        waker: Option<BorrowedFd<'_>>,
        wake_on_change: bool,
    ) -> Result<()> {
        let alive = self.watched.values().filter(|watched| !watched.task.state.is_terminal());
        let supervisors: Vec<&ProcessHandle> = alive.clone().filter_map(WatchedTask::handle).collect();
        let must_poll = wake_on_change || alive.count() > supervisors.len();
        let mut polled: Vec<PollFd<'_>> = supervisors
            .iter()
            .map(|handle| handle.as_fd())
            .chain(waker)
            .chain(self.events.as_ref().map(AsFd::as_fd))
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let pause = if must_poll { left.min(self.poll_interval()) } else { left };
            match poll(&mut polled, Some(&timespec(pause))) {
                Ok(0) if left > pause && self.registry.change_mark()? == self.mark => {}
                Ok(_) | Err(rustix::io::Errno::INTR) => return Ok(()),
                Err(error) => return Err(watch_error(error.into())),
            }
        }
    }
}

impl WatchedTask {
    fn handle(&self) -> Option<&ProcessHandle> {
        match &self.supervision {
            Supervision::Alive(handle) => Some(handle),
            Supervision::NoSupervisor | Supervision::Missing => None,
        }
    }
}

fn read(registry: &Registry, id: &TaskId) -> Result<WatchedTask> {
    let task = registry.get(id)?.ok_or_else(|| EngineError::unknown(id))?;
    let supervision = match (task.state, &task.supervisor) {
        (State::Working, Some(supervisor)) => {
            match process_identity(supervisor).open().map_err(watch_error)? {
                Some(handle) => Supervision::Alive(handle),
                None => Supervision::Missing,
            }
        }
        _ => Supervision::NoSupervisor,
    };
    Ok(WatchedTask { task, supervision })
}

fn watch_error(source: std::io::Error) -> EngineError {
    EngineError::Io { doing: "watch a supervisor", source }
}

pub(super) fn sleep_unless_woken(length: Duration, waker: Option<BorrowedFd<'_>>) -> Result<()> {
    let mut polled: Vec<PollFd<'_>> =
        waker.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    match poll(&mut polled, Some(&timespec(length))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(EngineError::Io { doing: "wait", source: error.into() }),
    }
}

fn timespec(length: Duration) -> Timespec {
    Timespec { tv_sec: length.as_secs().cast_signed(), tv_nsec: length.subsec_nanos().into() }
}
