//! Rescue: finishes the record of a task whose supervisor died.
//!
//! A supervisor, and before it the process that starts it, holds the lock of its task: a process that
//! acquires the lock of an active task knows that it has no supervisor, and none can start meanwhile. A
//! `starting` task returns to the queue. A `working` task, whose agent may have run, is never started again:
//! it fails with `supervisor_lost`, and its report is rebuilt.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{State, TaskId};
use delegator_registry::{ActiveTask, Attempt, LockAttempt, Registry, TaskFile};
use delegator_supervisor::process::Cgroup;

use super::delivery::{is_delivery_due, start_delivery_if_due};
use super::leftovers;
use crate::Engine;
use crate::error::Result;
use crate::shared::task_of_process::owner_of;
use crate::submit::promote::{promote, start_all, with_promotion};

/// Between claiming or storing a task and locking it. Starting may take longer.
const LOCK_GRACE_MS: i64 = 2_000;
/// An overview makes no pass if this process made one more recently.
const MIN_OVERVIEW_PASS_INTERVAL: Duration = Duration::from_secs(1);
/// A thread makes regular passes there, so an overview need not make one.
static DIRS_WITH_SCHEDULED_UPKEEP: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// The state directory and time of the last pass that an overview made in this process.
static LAST_PASS: Mutex<Option<(PathBuf, Instant)>> = Mutex::new(None);

pub(crate) fn rescue(engine: &Engine) -> Result<()> {
    match engine.find_registry()? {
        Some(mut registry) => rescue_in(engine, &mut registry),
        None => Ok(()),
    }
}

/// For calls that come many times a second.
pub(crate) fn rescue_unless_recent(engine: &Engine, registry: &mut Registry) -> Result<()> {
    let is_recent = |(dir, at): &(PathBuf, Instant)| {
        *dir == engine.state_dir && at.elapsed() < MIN_OVERVIEW_PASS_INTERVAL
    };
    if lock_mutex(&DIRS_WITH_SCHEDULED_UPKEEP).contains(&engine.state_dir)
        || lock_mutex(&LAST_PASS).as_ref().is_some_and(is_recent)
    {
        return Ok(());
    }
    *lock_mutex(&LAST_PASS) = Some((engine.state_dir.clone(), Instant::now()));
    rescue_in(engine, registry)
}

/// Ends tasks without a supervisor, starts what may start, and the delivery of notifications. A few cheap
/// reads if nothing is due.
pub(crate) fn rescue_in(engine: &Engine, registry: &mut Registry) -> Result<()> {
    // A directory that cannot be removed must not prevent a rescue.
    let _ = registry.remove_dead_submits();
    for active in registry.active()? {
        rescue_one(engine, registry, &active)?;
    }
    // Also if no task was rescued: a failed start leaves its task in the queue.
    promote(engine, registry)?;
    start_delivery_if_due(engine, registry)
}

pub(crate) fn rescue_task(engine: &Engine, registry: &mut Registry, id: &TaskId) -> Result<()> {
    match registry.active()?.into_iter().find(|active| active.id == *id) {
        Some(active) => rescue_one(engine, registry, &active),
        None => Ok(()),
    }
}

pub(crate) fn is_rescue_due(engine: &Engine, registry: &Registry) -> Result<bool> {
    for active in registry.active()? {
        if is_abandoned(engine, registry, &active)? {
            return Ok(true);
        }
    }
    let can_claim = with_promotion(engine, |promotion| Ok(registry.can_claim(promotion, engine.now_ms())?))?;
    Ok(can_claim || is_delivery_due(engine, registry)?)
}

pub(crate) fn rescue_one(engine: &Engine, registry: &mut Registry, active: &ActiveTask) -> Result<()> {
    if is_just_claimed(engine, active) {
        return Ok(());
    }
    let dir = registry.dir().task(&active.id);
    let lock = dir.try_lock()?;
    // Usually the task has just ended normally.
    if matches!(lock, LockAttempt::Held) || !is_unchanged(registry, active)? {
        return Ok(());
    }
    crash_point(CrashPoint::RescueLocked);
    if active.state == State::Starting {
        // The supervisor may have created its control group already.
        drop(Cgroup::find_left_by(&active.id));
        registry.give_back(&active.id, &active.nonce, engine.now_ms())?;
        return Ok(());
    }
    let owner = |pid| owner_of(registry, &active.id, pid);
    let survivors = engine.system.sweep_lost(&active.id, &owner);
    crash_point(CrashPoint::RescueSwept);
    // A partial last line is no event. If it cannot be removed, record the end anyway; readers skip it.
    if let LockAttempt::Locked(task_lock) = &lock {
        let _ = dir.truncate_torn_tail(TaskFile::Events, task_lock);
    }
    // Before the end is recorded: afterwards no process looks at the task again.
    leftovers::remove_temporary_dir(&dir);
    let finish = engine.system.finish_lost_run(registry, &active.id, survivors);
    let attempt = Attempt::working(active.nonce.clone());
    let claimed = with_promotion(engine, |promotion| {
        Ok(registry.finish(&active.id, &attempt, &finish, promotion, engine.now_ms())?)
    })?;
    crash_point(CrashPoint::RescueCommitted);
    leftovers::remove_wake_socket(&dir);
    leftovers::remove_scratch_dirs(&dir);
    if let delegator_registry::Cas::Applied(claimed) = claimed {
        start_all(engine, registry, claimed)?;
    }
    Ok(())
}

/// Its lock is free, and its end was not recorded since `active` was read.
pub(crate) fn is_abandoned(engine: &Engine, registry: &Registry, active: &ActiveTask) -> Result<bool> {
    if is_just_claimed(engine, active) {
        return Ok(false);
    }
    let lock = registry.dir().task(&active.id).try_lock()?;
    if matches!(lock, LockAttempt::Held) {
        return Ok(false);
    }
    is_unchanged(registry, active)
}

fn is_just_claimed(engine: &Engine, active: &ActiveTask) -> bool {
    active.state == State::Starting && may_lock_soon(engine, active.claimed_at_ms)
}

/// Whether the process that claimed or stored a task at this time may be about to lock it. A negative age
/// does not count: a clock that was set back must not block the rescue forever.
pub(crate) fn may_lock_soon(engine: &Engine, since_ms: i64) -> bool {
    (0..LOCK_GRACE_MS).contains(&(engine.now_ms() - since_ms))
}

fn lock_mutex<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_unchanged(registry: &Registry, active: &ActiveTask) -> Result<bool> {
    let now = registry.get(&active.id)?;
    Ok(now.is_some_and(|task| task.state == active.state && task.nonce.as_ref() == Some(&active.nonce)))
}

#[derive(Debug)]
pub(crate) struct UpkeepRegistration(PathBuf);

impl UpkeepRegistration {
    pub(crate) fn register(dir: &Path) -> UpkeepRegistration {
        lock_mutex(&DIRS_WITH_SCHEDULED_UPKEEP).push(dir.to_owned());
        UpkeepRegistration(dir.to_owned())
    }
}

impl Drop for UpkeepRegistration {
    fn drop(&mut self) {
        let mut dirs = lock_mutex(&DIRS_WITH_SCHEDULED_UPKEEP);
        let index = dirs.iter().position(|dir| *dir == self.0);
        index.map(|at| dirs.swap_remove(at));
    }
}
