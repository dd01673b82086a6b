//! Noticing that tasks change, for any number of tasks in one thread.
//!
//! A working task is watched through the pidfd of its supervisor, checked against its start time: it becomes readable
//! when the supervisor is gone, which it is only after it has recorded the end. For all others a counter that changes
//! with every commit is compared every 50 ms; it costs no read of any table. Always in this order: take the mark, read
//! the rows, open the pidfds, sleep. So nothing that happens in between is missed.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use delegator_domain::task::{State, TaskId};
use delegator_registry::{ChangeMark, Identity, Registry, Task};
use delegator_supervisor::process::{ProcessHandle, ProcessIdentity};
use rustix::event::{PollFd, PollFlags, poll};

use crate::clock::timespec;
use crate::connection_pool::PooledConnection;
use crate::error::EngineError;

const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct TaskWatch {
    pub(crate) registry: PooledConnection,
    mark: ChangeMark,
    watched: HashMap<TaskId, WatchedTask>,
}

#[derive(Debug)]
struct WatchedTask {
    task: Task,
    supervision: Supervision,
}

#[derive(Debug)]
enum Supervision {
    /// Readable when it is gone.
    Alive(ProcessHandle),
    /// Not begun, over, or out of sight.
    NotObservable,
    /// The row names a supervisor that is not there: it has just ended, or it is lost.
    Missing,
}

impl TaskWatch {
    pub(crate) fn new(registry: PooledConnection) -> Result<TaskWatch, EngineError> {
        Ok(TaskWatch { mark: registry.change_mark()?, registry, watched: HashMap::new() })
    }

    /// The task as it was last seen; read now if it is new here.
    pub(crate) fn task(&mut self, id: &TaskId) -> Result<&Task, EngineError> {
        if !self.watched.contains_key(id) {
            let watched = read(&self.registry, id)?;
            self.watched.insert(id.clone(), watched);
        }
        self.watched.get(id).map(|watched| &watched.task).ok_or_else(|| unknown(id))
    }

    /// Keeps only what somebody still asks about.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&TaskId) -> bool) {
        self.watched.retain(|id, _| is_wanted(id));
    }

    /// Whether a supervisor that should be there is not.
    pub(crate) fn has_missing_supervisor(&self) -> bool {
        self.watched.values().any(|watched| matches!(watched.supervision, Supervision::Missing))
    }

    /// Reads again whatever may have changed.
    pub(crate) fn refresh(&mut self) -> Result<(), EngineError> {
        let mark = self.registry.change_mark()?;
        let changed = mark != self.mark;
        self.mark = mark;
        let mut gone = Vec::new();
        for (id, watched) in &mut self.watched {
            let is_due = match &watched.supervision {
                _ if watched.task.state.is_terminal() => false,
                Supervision::Alive(handle) => handle.wait_until(Instant::now()).map_err(watch_error)?,
                Supervision::NotObservable => changed,
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
        // Whoever asks for it next is told that there is no such task.
        gone.iter().for_each(|id| drop(self.watched.remove(id)));
        Ok(())
    }

    /// Sleeps until something may have changed, somebody wakes us, or the time has come.
    pub(crate) fn sleep(&self, until: Instant, waker: Option<BorrowedFd<'_>>) -> Result<(), EngineError> {
        let alive = self.watched.values().filter(|watched| !watched.task.state.is_terminal());
        let supervisors: Vec<&ProcessHandle> = alive.clone().filter_map(WatchedTask::handle).collect();
        let must_poll = alive.count() > supervisors.len();
        let mut polled: Vec<PollFd<'_>> = supervisors
            .iter()
            .map(|handle| handle.as_fd())
            .chain(waker)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let pause = if must_poll { left.min(POLL_INTERVAL) } else { left };
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
            Supervision::NotObservable | Supervision::Missing => None,
        }
    }
}

fn read(registry: &Registry, id: &TaskId) -> Result<WatchedTask, EngineError> {
    let task = registry.get(id)?.ok_or_else(|| unknown(id))?;
    let supervision = match (task.state, &task.supervisor) {
        (State::Working, Some(supervisor)) => {
            match process_identity(supervisor).open().map_err(watch_error)? {
                Some(handle) => Supervision::Alive(handle),
                None => Supervision::Missing,
            }
        }
        _ => Supervision::NotObservable,
    };
    Ok(WatchedTask { task, supervision })
}

fn unknown(id: &TaskId) -> EngineError {
    EngineError::UnknownTask { given: id.to_string() }
}

fn watch_error(source: std::io::Error) -> EngineError {
    EngineError::Io { doing: "watch a supervisor", source }
}

fn process_identity(known: &Identity) -> ProcessIdentity {
    ProcessIdentity {
        boot_id: known.boot_id.clone(),
        pid: known.pid.cast_signed(),
        start_time: known.start_time,
        pid_namespace: known.pid_ns,
    }
}
