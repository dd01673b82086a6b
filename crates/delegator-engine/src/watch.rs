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
use delegator_supervisor::process::{Handle, ProcessIdentity};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::EngineError;
use crate::shelf::Lent;

const COMPARE_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) registry: Lent,
    mark: ChangeMark,
    watched: HashMap<TaskId, Watched>,
}

#[derive(Debug)]
struct Watched {
    task: Task,
    supervision: Supervision,
}

#[derive(Debug)]
enum Supervision {
    /// Readable when it is gone.
    Seen(Handle),
    /// Not begun, over, or out of sight.
    Unseen,
    /// The row names a supervisor that is not there: it has just ended, or it is lost.
    Missing,
}

impl Watch {
    pub(crate) fn new(registry: Lent) -> Result<Watch, EngineError> {
        Ok(Watch { mark: registry.change_mark()?, registry, watched: HashMap::new() })
    }

    /// The task as it was last seen; read now if it is new here.
    pub(crate) fn task(&mut self, id: &TaskId) -> Result<&Task, EngineError> {
        if !self.watched.contains_key(id) {
            let seen = read(&self.registry, id)?;
            self.watched.insert(id.clone(), seen);
        }
        self.watched.get(id).map(|watched| &watched.task).ok_or_else(|| unknown(id))
    }

    /// Keeps only what somebody still asks about.
    pub(crate) fn keep(&mut self, is_wanted: impl Fn(&TaskId) -> bool) {
        self.watched.retain(|id, _| is_wanted(id));
    }

    /// Whether a supervisor that should be there is not.
    pub(crate) fn misses_one(&self) -> bool {
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
                Supervision::Seen(handle) => handle.wait_until(Instant::now()).map_err(watching)?,
                Supervision::Unseen => changed,
                Supervision::Missing => true,
            };
            if is_due {
                match read(&self.registry, id) {
                    Ok(seen) => *watched = seen,
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
        let supervisors: Vec<&Handle> = alive.clone().filter_map(Watched::handle).collect();
        let must_compare = alive.count() > supervisors.len();
        let mut polled: Vec<PollFd<'_>> = supervisors
            .iter()
            .map(|handle| handle.as_fd())
            .chain(waker)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let pause = if must_compare { left.min(COMPARE_EVERY) } else { left };
            match poll(&mut polled, Some(&timespec(pause))) {
                Ok(0) if left > pause && self.registry.change_mark()? == self.mark => {}
                Ok(_) | Err(rustix::io::Errno::INTR) => return Ok(()),
                Err(error) => return Err(watching(error.into())),
            }
        }
    }
}

impl Watched {
    fn handle(&self) -> Option<&Handle> {
        match &self.supervision {
            Supervision::Seen(handle) => Some(handle),
            Supervision::Unseen | Supervision::Missing => None,
        }
    }
}

fn read(registry: &Registry, id: &TaskId) -> Result<Watched, EngineError> {
    let task = registry.get(id)?.ok_or_else(|| unknown(id))?;
    let supervision = match (task.state, &task.supervisor) {
        (State::Working, Some(supervisor)) => match identity(supervisor).open().map_err(watching)? {
            Some(handle) => Supervision::Seen(handle),
            None => Supervision::Missing,
        },
        _ => Supervision::Unseen,
    };
    Ok(Watched { task, supervision })
}

fn unknown(id: &TaskId) -> EngineError {
    EngineError::UnknownTask { given: id.to_string() }
}

fn watching(source: std::io::Error) -> EngineError {
    EngineError::Io { doing: "watch a supervisor", source }
}

pub(crate) fn nap(length: Duration) -> Result<(), EngineError> {
    #[cfg(all(test, debug_assertions))]
    if crate::model::on_stage(|stage| stage.nap(length)).is_some() {
        return Ok(());
    }
    pause(&mut [], length)
}

/// A nap that a waker ends.
pub(crate) fn nap_unless(length: Duration, waker: BorrowedFd<'_>) -> Result<(), EngineError> {
    pause(&mut [PollFd::from_borrowed_fd(waker, PollFlags::IN)], length)
}

fn pause(polled: &mut [PollFd<'_>], length: Duration) -> Result<(), EngineError> {
    match poll(polled, Some(&timespec(length))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(EngineError::Io { doing: "wait", source: error.into() }),
    }
}

fn timespec(length: Duration) -> Timespec {
    Timespec { tv_sec: length.as_secs().cast_signed(), tv_nsec: length.subsec_nanos().into() }
}

fn identity(known: &Identity) -> ProcessIdentity {
    ProcessIdentity {
        boot_id: known.boot_id.clone(),
        pid: known.pid.cast_signed(),
        start_time: known.start_time,
        pid_namespace: known.pid_ns,
    }
}
