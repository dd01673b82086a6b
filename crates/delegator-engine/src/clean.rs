//! Cleaning up: ending what is stuck, forgetting what is old, removing what crashes left.
//!
//! Nothing that lives is touched: a task is stuck only if nobody holds its lock, and only ended ones are forgotten. A few
//! at a time, so that nobody waits long for the registry. Restore points with content that no branch has outlive their
//! task (see [`crate::kept_points`]). After a jump of the clock nothing is deleted unless the caller trusts the clock.

use std::time::{Duration, Instant};

use delegator_domain::task::{State, TaskId};
use delegator_registry::{Leftover, LeftoverKind, Registry};
use delegator_supervisor::agent::Variables;

use crate::Engine;
use crate::clock::now_ms;
use crate::error::EngineError;
use crate::kept_points::{self, Examiner, KeptRestorePoint, Settling};
use crate::rescue::is_abandoned;
use crate::retention_clock::ClockVerdict;

/// What counts as stuck, and as old.
#[derive(Debug, Clone)]
pub struct Cleaning {
    pub stuck_after_ms: i64,
    pub old_after_ms: i64,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Drop all restore points of forgotten tasks, whatever they hold.
    pub include_restore_points: bool,
    /// Delete although the clock jumped.
    pub trust_clock: bool,
    /// Where git is found, whose refs go with the tasks that made them.
    pub environment: Variables,
}

#[derive(Debug, Default)]
pub struct Cleaned {
    pub stuck: Vec<TaskId>,
    /// Of these, how many are ended now.
    pub stuck_ended: usize,
    pub old_found: u64,
    pub old_forgotten: u64,
    pub oldest_age_ms: Option<i64>,
    /// What crashes left: found, and removed.
    pub leftovers: Vec<Leftover>,
    pub leftovers_removed: usize,
    /// Directories with results whose task is not in the registry; they are kept.
    pub unclaimed: Vec<TaskId>,
    /// Restore points that are, or would be, kept without their task; at most [`POINTS_SHOWN`].
    pub kept_points: Vec<KeptRestorePoint>,
    /// How many there are in all.
    pub kept_points_found: u64,
    /// Restore points that were dropped, or would be; at most [`POINTS_SHOWN`].
    pub dropped_points: Vec<KeptRestorePoint>,
    /// How many in all.
    pub points_dropped: usize,
    /// The clock moved by so much against the boot clock, so nothing is deleted by age.
    pub clock_jumped_by_ms: Option<i64>,
}

/// A submit that is under way has a directory and no row for a moment.
pub(crate) const LEFTOVER_AFTER_MS: i64 = 60 * 60 * 1000;
const FORGET_AT_ONCE: u32 = 2_000;
/// Restore points that are listed.
pub const POINTS_SHOWN: u32 = 200;
/// How long git may take in all repositories together.
const GIT_MAY_TAKE_IN_ALL: Duration = Duration::from_secs(30);

impl Engine {
    pub fn clean(&self, cleaning: &Cleaning) -> Result<Cleaned, EngineError> {
        let Some(mut registry) = self.find()? else { return Ok(Cleaned::default()) };
        let mut cleaned = Cleaned::default();
        let clock = self.clock_for_cleaning(&mut registry, cleaning)?;
        if let ClockVerdict::Jumped { by_ms } = clock {
            cleaned.clock_jumped_by_ms = Some(by_ms);
            if !cleaning.dry_run {
                return Err(EngineError::ClockJumped { by_ms });
            }
        }
        self.end_stuck(&mut registry, cleaning, &mut cleaned)?;
        self.forget_old(&mut registry, cleaning, &mut cleaned)?;
        self.settle_points(&mut registry, cleaning, clock, &mut cleaned)?;
        remove_leftovers(&mut registry, cleaning, &mut cleaned)?;
        if !cleaning.dry_run {
            self.promote(&mut registry)?;
        }
        Ok(cleaned)
    }

    fn end_stuck(
        &self,
        registry: &mut Registry,
        cleaning: &Cleaning,
        cleaned: &mut Cleaned,
    ) -> Result<(), EngineError> {
        let before = now_ms() - cleaning.stuck_after_ms;
        for active in registry.active()? {
            let since = active.started_at_ms.unwrap_or(active.claimed_at_ms);
            if since > before || !is_abandoned(registry, &active)? {
                continue;
            }
            cleaned.stuck.push(active.id.clone());
            if !cleaning.dry_run {
                self.rescue_one(registry, &active)?;
                let now = registry.get(&active.id)?;
                let still = |state| matches!(state, State::Starting | State::Working);
                cleaned.stuck_ended += usize::from(now.is_none_or(|task| !still(task.state)));
            }
        }
        Ok(())
    }

    fn forget_old(
        &self,
        registry: &mut Registry,
        cleaning: &Cleaning,
        cleaned: &mut Cleaned,
    ) -> Result<(), EngineError> {
        let before = now_ms() - cleaning.old_after_ms;
        cleaned.old_found = registry.count_old(before)?;
        let oldest = registry.old(before, 1)?.into_iter().next();
        let oldest = oldest.map(|id| registry.get(&id)).transpose()?.flatten();
        cleaned.oldest_age_ms =
            oldest.and_then(|task| task.retained_since_ms()).map(|since| now_ms() - since);
        if cleaning.dry_run {
            return Ok(());
        }
        loop {
            match self.forget_some(registry, before, FORGET_AT_ONCE)? {
                0 => return Ok(()),
                forgotten => cleaned.old_forgotten += forgotten,
            }
        }
    }

    /// Forgets some of those that ended before; how many. Runs no git.
    pub(crate) fn forget_some(
        &self,
        registry: &mut Registry,
        before_ms: i64,
        at_most: u32,
    ) -> Result<u64, EngineError> {
        let ids = registry.old(before_ms, at_most)?;
        let points = kept_points::to_record(registry, &ids)?;
        Ok(registry.forget_keeping(&ids, &points)?.forgotten.len() as u64)
    }

    /// Drops the restore points of forgotten tasks that may go, and lists the others.
    fn settle_points(
        &self,
        registry: &mut Registry,
        cleaning: &Cleaning,
        clock: ClockVerdict,
        cleaned: &mut Cleaned,
    ) -> Result<(), EngineError> {
        let deadline = Instant::now() + GIT_MAY_TAKE_IN_ALL;
        let retention_ms = self.restore_point_retention_ms;
        let is_trusted = clock == ClockVerdict::Trusted;
        if cleaning.dry_run {
            let recorded = kept_points::kept(registry, retention_ms, u32::MAX)?;
            let mut foreseen = recorded;
            foreseen.extend(self.points_of_old_tasks(registry, cleaning, deadline)?);
            let is_expired = |point: &KeptRestorePoint| point.expires_at_ms.is_some_and(|at| at <= now_ms());
            let goes = |point: &KeptRestorePoint| {
                cleaning.include_restore_points || (is_trusted && is_expired(point))
            };
            let (dropped, kept): (Vec<_>, Vec<_>) = foreseen.into_iter().partition(goes);
            cleaned.kept_points_found = kept.len() as u64;
            cleaned.points_dropped = dropped.len();
            cleaned.kept_points = shown(kept);
            cleaned.dropped_points = shown(dropped);
            return Ok(());
        }
        let expired_before_ms = retention_ms.filter(|_| is_trusted).map(|kept| now_ms() - kept);
        let settling = Settling {
            expired_before_ms,
            drop_all: cleaning.include_restore_points,
            deadline,
            environment: &cleaning.environment,
        };
        let dropped = kept_points::settle(registry, &settling, retention_ms)?;
        cleaned.points_dropped = dropped.len();
        cleaned.dropped_points = shown(dropped);
        cleaned.kept_points_found = registry.count_restore_points()?;
        cleaned.kept_points = kept_points::kept(registry, retention_ms, POINTS_SHOWN)?;
        Ok(())
    }

    /// For a dry run: restore points of tasks that would be forgotten, without those whose content is on a branch.
    fn points_of_old_tasks(
        &self,
        registry: &Registry,
        cleaning: &Cleaning,
        deadline: Instant,
    ) -> Result<Vec<KeptRestorePoint>, EngineError> {
        let mut examiner = Examiner::new(&cleaning.environment, deadline);
        let mut found = Vec::new();
        for task in registry.old(now_ms() - cleaning.old_after_ms, FORGET_AT_ONCE)? {
            let points = kept_points::points_of(registry, &task)?;
            if points.is_empty() {
                continue;
            }
            let since_ms = registry.get(&task)?.and_then(|task| task.retained_since_ms());
            for point in points {
                let Some(reason) = examiner.examine(&point) else { continue };
                found.push(KeptRestorePoint {
                    task: task.clone(),
                    repository: point.repository.display().to_string(),
                    reference: point.reference,
                    reason,
                    expires_at_ms: since_ms
                        .zip(self.restore_point_retention_ms)
                        .map(|(since, kept)| since.saturating_add(kept)),
                });
            }
        }
        Ok(found)
    }
}

fn shown(mut points: Vec<KeptRestorePoint>) -> Vec<KeptRestorePoint> {
    points.truncate(POINTS_SHOWN as usize);
    points
}

fn remove_leftovers(
    registry: &mut Registry,
    cleaning: &Cleaning,
    cleaned: &mut Cleaned,
) -> Result<(), EngineError> {
    let found = registry.orphans(now_ms() - LEFTOVER_AFTER_MS)?;
    let (unclaimed, leftovers): (Vec<Leftover>, Vec<Leftover>) =
        found.into_iter().partition(|leftover| leftover.kind == LeftoverKind::Unclaimed);
    cleaned.unclaimed = unclaimed.into_iter().map(|leftover| leftover.id).collect();
    if !cleaning.dry_run {
        cleaned.leftovers_removed = registry.remove_orphans(&leftovers)?.len();
    }
    cleaned.leftovers = leftovers;
    Ok(())
}
