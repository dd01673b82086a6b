//! Waiting for an end, without a timer that polls the registry and without holding anything.
//!
//! The supervisor's end is awaited through its pidfd, checked against its start time; until it is known, and while a task
//! is queued, a counter that changes with every commit is compared every 50 ms.

use std::time::{Duration, Instant};

use delegator_domain::task::{State, TaskId};
use delegator_registry::{Identity, Registry, Task};
use delegator_supervisor::process::ProcessIdentity;
use rustix::event::{Timespec, poll};
use serde_json::Value;

use crate::Engine;
use crate::error::EngineError;

const COMPARE_EVERY: Duration = Duration::from_millis(50);
/// A submission is answered when the thread is known, and somebody waits for the answer.
const THREAD_COMPARE_EVERY: Duration = Duration::from_millis(5);
/// How often a waiter looks after the others, and tells how far things are.
const LOOK_AROUND: Duration = Duration::from_secs(1);

/// How waiting ended.
#[derive(Debug)]
pub struct Waited {
    pub task: Task,
    /// The time was over first.
    pub expired: bool,
}

/// How far a task is.
#[derive(Debug)]
pub struct Progressed<'a> {
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
        mut told: impl FnMut(&Progressed<'_>) -> bool,
    ) -> Result<Waited, EngineError> {
        let mut registry = self.find()?.ok_or_else(|| EngineError::UnknownTask { given: id.to_string() })?;
        let mut next_look = Instant::now();
        loop {
            let task = registry.get(id)?.ok_or_else(|| EngineError::UnknownTask { given: id.to_string() })?;
            if task.state.is_terminal() {
                return Ok(Waited { task, expired: false });
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(Waited { task, expired: true });
            }
            if now >= next_look {
                next_look = now + LOOK_AROUND;
                let snapshot = registry.dir().task(id).read_snapshot()?;
                let snapshot = snapshot.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                if !told(&Progressed { task: &task, snapshot }) {
                    return Ok(Waited { task, expired: true });
                }
                self.rescue_in(&mut registry)?;
            }
            let until = deadline.map_or(next_look, |deadline| deadline.min(next_look));
            pause(&registry, &task, until)?;
        }
    }
}

impl Engine {
    /// Until the agent has announced its thread, or the task is over, or the deadline has passed.
    pub fn wait_for_thread(&self, id: &TaskId, deadline: Instant) -> Result<Task, EngineError> {
        let unknown = || EngineError::UnknownTask { given: id.to_string() };
        let registry = self.find()?.ok_or_else(unknown)?;
        loop {
            let mark = registry.change_mark()?;
            let task = registry.get(id)?.ok_or_else(unknown)?;
            if task.thread_id.is_some() || task.state.is_terminal() || Instant::now() >= deadline {
                return Ok(task);
            }
            while Instant::now() < deadline && registry.change_mark()? == mark {
                nap(THREAD_COMPARE_EVERY)?;
            }
        }
    }

    /// Until the first of several has ended. With none of them ended in time, the first one as it stands.
    pub fn wait_any(&self, ids: &[TaskId], deadline: Option<Instant>) -> Result<Waited, EngineError> {
        let unknown = |id: &TaskId| EngineError::UnknownTask { given: id.to_string() };
        let nobody = || EngineError::UnknownTask { given: String::new() };
        let mut registry = self.find()?.ok_or_else(nobody)?;
        loop {
            let mark = registry.change_mark()?;
            for id in ids {
                let task = registry.get(id)?.ok_or_else(|| unknown(id))?;
                if task.state.is_terminal() {
                    return Ok(Waited { task, expired: false });
                }
            }
            let until = Instant::now() + LOOK_AROUND;
            while Instant::now() < until && registry.change_mark()? == mark {
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    let first = ids.first().ok_or_else(nobody)?;
                    let task = registry.get(first)?.ok_or_else(|| unknown(first))?;
                    return Ok(Waited { task, expired: true });
                }
                nap(COMPARE_EVERY)?;
            }
            self.rescue_in(&mut registry)?;
        }
    }
}

/// Sleeps until something may have changed.
fn pause(registry: &Registry, task: &Task, until: Instant) -> Result<(), EngineError> {
    if let (State::Working, Some(supervisor)) = (task.state, &task.supervisor) {
        let handle = identity(supervisor).open().map_err(EngineError::io("watch a supervisor"))?;
        return match handle {
            Some(handle) => handle.wait_until(until).map(drop).map_err(EngineError::io("watch a supervisor")),
            // Gone: either it has just recorded the end, or it is lost and somebody will find out.
            None => nap(COMPARE_EVERY.min(until.saturating_duration_since(Instant::now()))),
        };
    }
    let before = registry.change_mark()?;
    while Instant::now() < until && registry.change_mark()? == before {
        nap(COMPARE_EVERY.min(until.saturating_duration_since(Instant::now())))?;
    }
    Ok(())
}

fn nap(length: Duration) -> Result<(), EngineError> {
    let timeout = Timespec { tv_sec: length.as_secs().cast_signed(), tv_nsec: length.subsec_nanos().into() };
    match poll(&mut [], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(EngineError::Io { doing: "wait", source: error.into() }),
    }
}

fn identity(known: &Identity) -> ProcessIdentity {
    ProcessIdentity {
        boot_id: known.boot_id.clone(),
        pid: known.pid.cast_signed(),
        start_time: known.start_time,
        pid_namespace: known.pid_ns,
    }
}
