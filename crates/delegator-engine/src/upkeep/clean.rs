//! The cleanup command: ends stuck tasks, deletes old ones, removes what crashes left behind.
//!
//! It touches nothing that a live process owns: a task is stuck only if its lock is free, and only ended
//! tasks are deleted. Deletion works in batches, so that other processes do not wait long for the registry.
//! Restore points with unique content outlive their task (see [`retained`]). After a jump of the wall clock
//! nothing is deleted, unless the caller trusts the clock.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use delegator_domain::task::{State, TaskId};
use delegator_registry::{Leftover, LeftoverKind, RegistryError};
use delegator_supervisor::agent::Variables;

use super::leftovers::MIN_LEFTOVER_AGE_MS;
use super::rescue::{is_abandoned, rescue_one};
use super::retention::{delete_some_old_tasks, read_clocks, store_clock, stored_clock};
use super::retention_clock::{ClockRecord, ClockVerdict, judge};
use crate::Engine;
use crate::error::{EngineError, Result};
use crate::restore_points::retained::{self, DropPolicy, Examiner, RetainedRestorePoint};
use crate::shared::connection_pool::PooledConnection;
use crate::submit::promote::promote;

#[derive(Debug, Clone)]
pub struct CleanRequest {
    pub stuck_after_ms: i64,
    pub old_after_ms: i64,
    pub dry_run: bool,
    /// Drop all restore points of deleted tasks, even those with unique content.
    pub include_restore_points: bool,
    pub trust_clock: bool,
    /// The environment for git, which deletes the refs of restore points.
    pub environment: Variables,
}

#[derive(Debug, Default)]
pub struct CleanReport {
    pub stuck: Vec<TaskId>,
    pub stuck_ended: usize,
    pub old_found: u64,
    pub old: Vec<TaskId>,
    pub oldest_age_ms: Option<i64>,
    /// How many directories have files that crashes left behind.
    pub leftovers_found: usize,
    pub leftovers: Vec<TaskId>,
    /// Task directories with results but without a row in the registry; they are not deleted.
    pub unclaimed: Vec<TaskId>,
    /// Restore points that are, or would be, retained without their task; at most [`MAX_LISTED_POINTS`].
    pub retained_points: Vec<RetainedRestorePoint>,
    pub retained_points_found: u64,
    pub dropped_points: Vec<RetainedRestorePoint>,
    /// How far the wall clock moved against the boot clock; set if that blocks deletion by age.
    pub clock_jumped_by_ms: Option<i64>,
    /// What could not be cleaned; in a dry run, what is known to fail. Does not affect the others.
    pub failures: Vec<CleanFailure>,
}

#[derive(Debug)]
pub struct CleanFailure {
    /// A task id, or the reference of a restore point.
    pub target: String,
    pub problem: CleanProblem,
}

#[derive(Debug)]
pub enum CleanProblem {
    Failed(EngineError),
    /// The task is no longer in the registry, but its directory could not be removed.
    DirectoryLeft(EngineError),
    /// Another process holds the lock of the stuck task.
    Locked,
    NotDropped(String),
}

impl CleanFailure {
    fn directory_left(task: &TaskId, error: RegistryError) -> CleanFailure {
        CleanFailure { target: task.to_string(), problem: CleanProblem::DirectoryLeft(error.into()) }
    }

    fn of_task(task: &TaskId, error: impl Into<EngineError>) -> CleanFailure {
        CleanFailure { target: task.to_string(), problem: CleanProblem::Failed(error.into()) }
    }
}

const DELETE_BATCH: u32 = 2_000;
pub const MAX_LISTED_POINTS: u32 = 200;
/// Time limit for git in all repositories together.
const TOTAL_GIT_TIMEOUT: Duration = Duration::from_secs(30);

pub fn clean(engine: &Engine, request: &CleanRequest) -> Result<CleanReport> {
    let Some(registry) = engine.find_registry()? else { return Ok(CleanReport::default()) };
    let mut pass = CleaningPass { engine, registry, request, report: CleanReport::default() };
    let clock = pass.judge_clock()?;
    if let ClockVerdict::Jumped { by_ms } = clock {
        pass.report.clock_jumped_by_ms = Some(by_ms);
        if !request.dry_run {
            return Err(EngineError::ClockJumped { by_ms });
        }
    }
    let cleaned = pass.clean_registry(clock);
    if request.dry_run {
        cleaned?
    } else {
        cleaned.and_then(|()| promote(engine, &mut pass.registry)).map_err(EngineError::in_cleanup)?;
    }
    Ok(pass.report)
}

struct CleaningPass<'a> {
    engine: &'a Engine,
    registry: PooledConnection,
    request: &'a CleanRequest,
    report: CleanReport,
}

impl CleaningPass<'_> {
    fn clean_registry(&mut self, clock: ClockVerdict) -> Result<()> {
        self.end_stuck()?;
        self.delete_old_tasks()?;
        self.drop_restore_points(clock)?;
        self.remove_leftovers()
    }

    /// Whether the clock can be trusted. If the request trusts it, later passes trust it as well.
    fn judge_clock(&mut self) -> Result<ClockVerdict> {
        let now = read_clocks(self.engine)?;
        if self.request.trust_clock {
            if !self.request.dry_run {
                store_clock(&mut self.registry, &ClockRecord::trusting(now))?;
            }
            return Ok(ClockVerdict::Trusted);
        }
        Ok(judge(stored_clock(&self.registry)?.as_ref(), now).0)
    }

    fn end_stuck(&mut self) -> Result<()> {
        let before = self.engine.now_ms() - self.request.stuck_after_ms;
        for active in self.registry.active()? {
            let since = active.started_at_ms.unwrap_or(active.claimed_at_ms);
            if since > before || !is_abandoned(self.engine, &self.registry, &active)? {
                continue;
            }
            self.report.stuck.push(active.id.clone());
            if self.request.dry_run {
                continue;
            }
            if let Err(error) = rescue_one(self.engine, &mut self.registry, &active) {
                self.report.failures.push(CleanFailure::of_task(&active.id, error));
                continue;
            }
            let is_active = |state| matches!(state, State::Starting | State::Working);
            if self.registry.get(&active.id)?.is_some_and(|task| is_active(task.state)) {
                self.report
                    .failures
                    .push(CleanFailure { target: active.id.to_string(), problem: CleanProblem::Locked })
            } else {
                self.report.stuck_ended += 1
            }
        }
        Ok(())
    }

    fn delete_old_tasks(&mut self) -> Result<()> {
        let before = self.engine.now_ms() - self.request.old_after_ms;
        self.report.old_found = self.registry.count_ended_before(before)?;
        let oldest = self.registry.ended_before(before, 1)?.into_iter().next();
        let oldest = oldest.map(|id| self.registry.get(&id)).transpose()?.flatten();
        self.report.oldest_age_ms =
            oldest.and_then(|task| task.retained_since_ms()).map(|since| self.engine.now_ms() - since);
        if self.request.dry_run {
            return Ok(());
        }
        let mut not_deleted = BTreeMap::new();
        loop {
            let batch = delete_some_old_tasks(
                self.engine,
                &mut self.registry,
                before,
                DELETE_BATCH,
                &self.request.environment,
            )?;
            self.report.old.extend(batch.deleted);
            let not_removed = batch.not_removed.into_iter();
            self.report
                .failures
                .extend(not_removed.map(|(task, error)| CleanFailure::directory_left(&task, error)));
            not_deleted.extend(batch.not_deleted);
            if !batch.has_more {
                break;
            }
        }
        let not_deleted = not_deleted.into_iter();
        self.report.failures.extend(not_deleted.map(|(task, error)| CleanFailure::of_task(&task, error)));
        Ok(())
    }

    fn drop_restore_points(&mut self, clock: ClockVerdict) -> Result<()> {
        let deadline = Instant::now() + TOTAL_GIT_TIMEOUT;
        let retention_ms = self.engine.restore_point_retention_ms;
        let is_trusted = clock == ClockVerdict::Trusted;
        if self.request.dry_run {
            let mut points = retained::list_retained(&self.registry, retention_ms, u32::MAX)?;
            points.extend(self.points_of_old_tasks(deadline)?);
            let is_expired = |point: &RetainedRestorePoint| {
                point.expires_at_ms.is_some_and(|at| at <= self.engine.now_ms())
            };
            let is_dropped = |point: &RetainedRestorePoint| {
                (self.request.include_restore_points || (is_trusted && is_expired(point)))
                    && Path::new(&point.repository).is_dir()
            };
            let (dropped, retained): (Vec<_>, Vec<_>) = points.into_iter().partition(is_dropped);
            self.report.retained_points_found = retained.len() as u64;
            self.report.retained_points = retained;
            self.report.retained_points.truncate(MAX_LISTED_POINTS as usize);
            self.report.dropped_points = dropped;
            return Ok(());
        }
        let expired_before_ms = retention_ms.filter(|_| is_trusted).map(|ms| self.engine.now_ms() - ms);
        let policy = DropPolicy {
            expired_before_ms,
            drop_all: self.request.include_restore_points,
            limit: u32::MAX,
            deadline,
            environment: &self.request.environment,
        };
        let pass = retained::drop_due_points(&mut self.registry, self.engine, &policy)?;
        self.report.dropped_points = pass.dropped;
        self.report.retained_points_found = self.registry.count_restore_points()?;
        self.report.retained_points =
            retained::list_retained(&self.registry, retention_ms, MAX_LISTED_POINTS)?;
        if self.request.include_restore_points {
            let failure =
                |(target, problem)| CleanFailure { target, problem: CleanProblem::NotDropped(problem) };
            self.report.failures.extend(pass.failed.into_iter().map(failure));
        }
        Ok(())
    }

    /// For a dry run. Those whose content is on a branch are left out.
    fn points_of_old_tasks(&mut self, deadline: Instant) -> Result<Vec<RetainedRestorePoint>> {
        let mut examiner = Examiner::new(&self.request.environment, deadline);
        let mut found = Vec::new();
        for task in self.registry.ended_before(self.engine.now_ms() - self.request.old_after_ms, u32::MAX)? {
            let points = match retained::points_of(&self.registry, &task) {
                Err(error @ EngineError::StoredRecord { .. }) => {
                    self.report.failures.push(CleanFailure::of_task(&task, error));
                    continue;
                }
                points => points?,
            };
            self.report.old.push(task.clone());
            if points.is_empty() {
                continue;
            }
            let since_ms = self.registry.get(&task)?.and_then(|task| task.retained_since_ms());
            for point in points {
                let Some(reason) = examiner.examine(&point) else { continue };
                found.push(RetainedRestorePoint {
                    task: task.clone(),
                    repository: point.repository.display().to_string(),
                    reference: point.reference,
                    reason,
                    expires_at_ms: since_ms
                        .zip(self.engine.restore_point_retention_ms)
                        .map(|(since, retention)| since.saturating_add(retention)),
                });
            }
        }
        Ok(found)
    }

    fn remove_leftovers(&mut self) -> Result<()> {
        let found = self.registry.orphans(self.engine.now_ms() - MIN_LEFTOVER_AGE_MS)?;
        let (unclaimed, mut leftovers): (Vec<Leftover>, Vec<Leftover>) =
            found.into_iter().partition(|leftover| leftover.kind == LeftoverKind::WithoutRow);
        self.report.unclaimed = unclaimed.into_iter().map(|leftover| leftover.id).collect();
        // The directories that this call could not remove are reported already.
        leftovers.retain(|leftover| {
            leftover.kind != LeftoverKind::Pruned
                || self.report.failures.iter().all(|failure| failure.target != leftover.id.as_str())
        });
        self.report.leftovers_found = leftovers.len();
        if self.request.dry_run {
            self.report.leftovers = leftovers.into_iter().map(|leftover| leftover.id).collect();
            return Ok(());
        }
        for leftover in leftovers {
            match self.registry.remove_orphans(std::slice::from_ref(&leftover)) {
                Ok(removed) => self.report.leftovers.extend(removed.into_iter().map(|removed| removed.id)),
                Err(error) if leftover.kind == LeftoverKind::Pruned => {
                    self.report.failures.push(CleanFailure::directory_left(&leftover.id, error));
                }
                Err(error) => self.report.failures.push(CleanFailure::of_task(&leftover.id, error)),
            }
        }
        Ok(())
    }
}
