//! A task whose supervisor is gone is ended by whoever finds out.
//!
//! A supervisor holds its task's lock as long as it lives, and whoever starts one holds it before. So whoever gets the
//! lock of an active task knows that nobody supervises it, and while he holds it nobody can begin to: he judges alone.
//!
//! Everybody alive makes the rounds: servers and waiters every few seconds and when a supervisor they watch is gone,
//! supervisors every thirty, every other call once.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{FailureKind, State, TaskEnd, TaskId};
use delegator_registry::{ActiveTask, Attempt, Finish, LockAttempt, Registry, TaskFile};
use delegator_supervisor::process::{Cgroup, SweepLimits, sweep_lost};

use super::leftovers;
use super::process_owner::owner_of;
use crate::Engine;
use crate::clock::now_ms;
use crate::error::EngineError;

/// How long whoever claimed a task may take to lock it. Not how long a start may take: from then on it is locked.
const LOCK_GRACE_MS: i64 = 2_000;
const MIN_OVERVIEW_PASS_INTERVAL: Duration = Duration::from_secs(1);
/// Where a thread of this process makes the rounds: whoever wants an overview there need not.
static DIRS_WITH_SCHEDULED_UPKEEP: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Where this process made its last pass for somebody who wanted an overview, and when.
static LAST_PASS: Mutex<Option<(PathBuf, Instant)>> = Mutex::new(None);

impl Engine {
    /// Makes a pass over this state directory, if there is one.
    pub fn rescue(&self) -> Result<(), EngineError> {
        match self.find_registry()? {
            Some(mut registry) => self.rescue_in(&mut registry),
            None => Ok(()),
        }
    }

    /// For whoever is asked many times a second: the same, unless this process has just done it, or does it anyway.
    pub(crate) fn rescue_unless_recent(&self, registry: &mut Registry) -> Result<(), EngineError> {
        let is_recent = |(dir, at): &(PathBuf, Instant)| {
            *dir == self.state_dir && at.elapsed() < MIN_OVERVIEW_PASS_INTERVAL
        };
        if lock_mutex(&DIRS_WITH_SCHEDULED_UPKEEP).contains(&self.state_dir)
            || lock_mutex(&LAST_PASS).as_ref().is_some_and(is_recent)
        {
            return Ok(());
        }
        *lock_mutex(&LAST_PASS) = Some((self.state_dir.clone(), Instant::now()));
        self.rescue_in(registry)
    }

    /// Ends what nobody supervises, and starts what may start. One cheap read when nothing is due.
    pub(crate) fn rescue_in(&self, registry: &mut Registry) -> Result<(), EngineError> {
        leftovers::remove_dead_submits(registry);
        for active in registry.active()? {
            self.rescue_one(registry, &active)?;
        }
        // Also when nothing was lost: a start that failed left its task in the queue, and somebody has to try again.
        self.promote(registry)
    }

    /// Whether a pass would do something. Changes nothing.
    pub(crate) fn is_rescue_due(&self, registry: &Registry) -> Result<bool, EngineError> {
        for active in registry.active()? {
            if is_abandoned(registry, &active)? {
                return Ok(true);
            }
        }
        self.with_promotion(|promotion| Ok(registry.can_claim(promotion)?))
    }

    pub(crate) fn rescue_one(&self, registry: &mut Registry, active: &ActiveTask) -> Result<(), EngineError> {
        if is_just_claimed(active) {
            return Ok(());
        }
        let dir = registry.dir().task(&active.id);
        let lock = dir.try_lock()?;
        // Most often it has just ended in order; then there is nothing to be looked for.
        if matches!(lock, LockAttempt::Held) || !is_unchanged(registry, active)? {
            return Ok(());
        }
        crash_point(CrashPoint::RescueLocked);
        if active.state == State::Starting {
            // It may have got as far as making its group.
            drop(Cgroup::find_left_by(&active.id));
            registry.give_back(&active.id, &active.nonce, now_ms())?;
            return Ok(());
        }
        let survivors = sweep_processes(registry, &active.id);
        crash_point(CrashPoint::RescueSwept);
        // Half a line is nobody's word. If it cannot be cut, the end is still worth recording; readers pass over it.
        if let LockAttempt::Locked(task_lock) = &lock {
            let _ = dir.truncate_torn_tail(TaskFile::Events, task_lock);
        }
        let message = "its supervisor was lost; what it had done until then is kept".to_owned();
        let finish = Finish {
            kill_incomplete: (!survivors.is_empty()).then(|| serde_json::json!(survivors)),
            summary: Some("Failed: the supervisor was lost".to_owned()),
            ..Finish::bare(TaskEnd::Failed { kind: FailureKind::SupervisorLost, message, retry_at: None })
        };
        let attempt = Attempt::working(active.nonce.clone());
        let claimed = self.with_promotion(|promotion| {
            Ok(registry.finish(&active.id, &attempt, &finish, promotion, now_ms())?)
        })?;
        crash_point(CrashPoint::RescueCommitted);
        leftovers::remove_wake_socket(&dir);
        leftovers::remove_scratch_dirs(&dir);
        if let delegator_registry::Cas::Applied(claimed) = claimed {
            self.start_all(registry, claimed)?;
        }
        Ok(())
    }
}

fn lock_mutex<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a supervisor left running carries the task's mark or is in its group, however far it went. Gives what could not be ended.
fn sweep_processes(registry: &Registry, id: &TaskId) -> Vec<i32> {
    #[cfg(all(test, debug_assertions))]
    if crate::simulation::in_simulation(|stage| stage.sweep(id)).is_some() {
        return Vec::new();
    }
    let owner = |pid| owner_of(registry, id, pid);
    let swept = sweep_lost(id, &owner, SweepLimits::default());
    swept.map(|report| report.survivors.iter().map(|one| one.pid).collect()).unwrap_or_default()
}

/// Nobody supervises it: its lock can be had, and whoever had it has not recorded the end since the list was read.
pub(crate) fn is_abandoned(registry: &Registry, active: &ActiveTask) -> Result<bool, EngineError> {
    if is_just_claimed(active) {
        return Ok(false);
    }
    let lock = registry.dir().task(&active.id).try_lock()?;
    if matches!(lock, LockAttempt::Held) {
        return Ok(false);
    }
    is_unchanged(registry, active)
}

/// Whether nobody has recorded anything since the list was read.
fn is_unchanged(registry: &Registry, active: &ActiveTask) -> Result<bool, EngineError> {
    let now = registry.get(&active.id)?;
    Ok(now.is_some_and(|task| task.state == active.state && task.nonce.as_ref() == Some(&active.nonce)))
}

/// Whoever claimed it may be about to lock it. A clock that was set back must not keep a task for ever.
fn is_just_claimed(active: &ActiveTask) -> bool {
    let age_ms = now_ms() - active.claimed_at_ms;
    active.state == State::Starting && (0..LOCK_GRACE_MS).contains(&age_ms)
}

/// An entry in [`ROUNDS_IN`], for as long as it lasts.
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
        let index = dirs.iter().position(|place| *place == self.0);
        index.map(|at| dirs.swap_remove(at));
    }
}
