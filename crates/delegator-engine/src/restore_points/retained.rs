//! Restore points of deleted tasks: which are retained, for how long, and dropping the others.
//!
//! When a task's row is deleted, its restore points are recorded in the registry in the same transaction,
//! without running git. Later passes examine them: a restore point whose content is on a branch is dropped;
//! one with unique content is retained until it expires or the user drops it. A restore point that cannot be
//! examined, because its repository is missing or git times out, is retained and tried again. Every pass is
//! bounded in time, and one in the background also in number.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::TaskId;
use delegator_git::{
    Git, GitError, RestorePoint, StoredPoint, drop_point, holds_unique_content, stored_points_named,
};
use delegator_registry::{HOLDS_UNIQUE_CONTENT, PointToRecord, RecordedPoint, Registry};
use delegator_supervisor::agent::Variables;

use super::record::{RestorePointRecord, first_line, reference};
use crate::Engine;
use crate::error::{EngineError, Result};
use crate::shared::git_program::git;

const GIT_TIMEOUT: Duration = Duration::from_secs(10);
const UNREACHABLE: &str = "unreachable";
const NO_TIME_LEFT: &str = "git took too long; run the command again";

/// Why a restore point is retained although its task is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetentionReason {
    /// It holds content that is on no branch.
    UniqueContent,
    Unreachable,
    NotExamined {
        problem: Option<String>,
    },
}

impl RetentionReason {
    fn of(stored: Option<&str>) -> RetentionReason {
        match stored {
            Some(HOLDS_UNIQUE_CONTENT) => RetentionReason::UniqueContent,
            Some(UNREACHABLE) => RetentionReason::Unreachable,
            other => RetentionReason::NotExamined { problem: other.map(str::to_owned) },
        }
    }

    fn as_stored(&self) -> &str {
        match self {
            RetentionReason::UniqueContent => HOLDS_UNIQUE_CONTENT,
            RetentionReason::Unreachable => UNREACHABLE,
            RetentionReason::NotExamined { problem } => problem.as_deref().unwrap_or("not examined"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedRestorePoint {
    pub task: TaskId,
    pub repository: String,
    pub reference: String,
    pub reason: RetentionReason,
    /// When retention drops it; `None`: never.
    pub expires_at_ms: Option<i64>,
}

#[derive(Debug)]
pub(crate) struct DropPolicy<'a> {
    /// Drop those of tasks that ended before this time.
    pub(crate) expired_before_ms: Option<i64>,
    pub(crate) drop_all: bool,
    pub(crate) limit: u32,
    pub(crate) deadline: Instant,
    pub(crate) environment: &'a Variables,
}

/// The restore points of tasks in the form in which they are recorded when the rows are deleted.
#[derive(Debug, Default)]
pub(crate) struct PointsToRecord {
    pub(crate) by_task: BTreeMap<TaskId, Vec<PointToRecord>>,
    /// Tasks whose record cannot be read: without their restore points they must not be deleted.
    pub(crate) unreadable: BTreeMap<TaskId, EngineError>,
}

pub(crate) fn to_record(registry: &Registry, ids: &[TaskId]) -> Result<PointsToRecord> {
    let mut recorded = PointsToRecord::default();
    for id in ids {
        let points = match points_of(registry, id) {
            Err(error @ EngineError::StoredRecord { .. }) => {
                recorded.unreadable.insert(id.clone(), error);
                continue;
            }
            points => points?,
        };
        let texts = points.iter().filter_map(|point| {
            Some(PointToRecord {
                repository: point.repository.display().to_string(),
                reference: point.reference.clone(),
                point: serde_json::to_string(point).ok()?,
            })
        });
        recorded.by_task.insert(id.clone(), texts.collect());
    }
    Ok(recorded)
}

/// All restore points of a task, including undo points.
pub(crate) fn points_of(registry: &Registry, id: &TaskId) -> Result<Vec<RestorePoint>> {
    let record = RestorePointRecord::read(&registry.dir().task(id))?.unwrap_or_default();
    Ok(record.points.into_iter().chain(record.undo.into_iter().flatten()).collect())
}

#[derive(Debug, Default)]
pub(crate) struct DropReport {
    pub(crate) dropped: Vec<RetainedRestorePoint>,
    /// With the reason. A missing repository is not a failure: it may come back.
    pub(crate) failed: Vec<(String, String)>,
}

/// Until the deadline. Those left over are the first of the next pass.
pub(crate) fn drop_due_points(
    registry: &mut Registry,
    engine: &Engine,
    policy: &DropPolicy<'_>,
) -> Result<DropReport> {
    let mut examiner = Examiner::new(policy.environment, policy.deadline);
    let expired_before = if policy.drop_all { Some(i64::MAX) } else { policy.expired_before_ms };
    let due = registry.due_restore_points(expired_before.unwrap_or(i64::MIN), policy.limit)?;
    let mut report = DropReport::default();
    for recorded in due {
        let is_expired = expired_before.is_some_and(|before| recorded.task_ended_at_ms < before);
        if examiner.has_expired() {
            if is_expired {
                report.failed.push((recorded.reference, NO_TIME_LEFT.to_owned()));
            }
            continue;
        }
        match examiner.drop_if_due(&recorded, is_expired) {
            None => {
                crash_point(CrashPoint::RestorePointDropped);
                registry.delete_restore_point_record(&recorded)?;
                let dropped = RetainedRestorePoint::of(recorded, engine.restore_point_retention_ms);
                report.dropped.push(dropped);
            }
            Some(reason) => {
                registry.retain_restore_point(&recorded, reason.as_stored(), engine.now_ms())?;
                if let (true, RetentionReason::NotExamined { problem }) = (is_expired, reason) {
                    let problem = problem.unwrap_or_else(|| NO_TIME_LEFT.to_owned());
                    report.failed.push((recorded.reference, problem));
                }
            }
        }
    }
    Ok(report)
}

pub(crate) fn list_retained(
    registry: &Registry,
    retention_ms: Option<i64>,
    limit: u32,
) -> Result<Vec<RetainedRestorePoint>> {
    let recorded = registry.restore_points(limit)?;
    Ok(recorded.into_iter().map(|point| RetainedRestorePoint::of(point, retention_ms)).collect())
}

impl RetainedRestorePoint {
    fn of(point: RecordedPoint, retention_ms: Option<i64>) -> RetainedRestorePoint {
        RetainedRestorePoint {
            reason: RetentionReason::of(point.reason.as_deref()),
            expires_at_ms: retention_ms.map(|ms| point.task_ended_at_ms.saturating_add(ms)),
            task: point.task,
            repository: point.repository,
            reference: point.reference,
        }
    }
}

/// Until the deadline. Skips repositories in which git timed out once.
pub(crate) struct Examiner<'a> {
    environment: &'a Variables,
    deadline: Instant,
    slow: HashSet<PathBuf>,
}

impl<'a> Examiner<'a> {
    pub(crate) fn new(environment: &'a Variables, deadline: Instant) -> Examiner<'a> {
        Examiner { environment, deadline, slow: HashSet::new() }
    }

    fn has_expired(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Drops a restore point, or returns why it is retained.
    fn drop_if_due(&mut self, recorded: &RecordedPoint, is_expired: bool) -> Option<RetentionReason> {
        let point: RestorePoint = match serde_json::from_str(&recorded.point) {
            Ok(point) => point,
            Err(error) => return Some(RetentionReason::NotExamined { problem: Some(error.to_string()) }),
        };
        if !is_expired && let Some(reason) = self.examine(&point) {
            return Some(reason);
        }
        let dropped = self.run_git(&point, |git| {
            if is_expired { drop_all(git, &recorded.task, &point) } else { drop_point(git, &point).map(drop) }
        });
        dropped.err()
    }

    /// Why a restore point must be retained; `None` if all its content is on a branch.
    pub(crate) fn examine(&mut self, point: &RestorePoint) -> Option<RetentionReason> {
        let examined = self.run_git(point, |git| {
            match holds_unique_content(git, point) {
                // The user dropped it.
                Err(_) if is_gone(git, point) => Ok(None),
                examined => Ok(examined?.then_some(RetentionReason::UniqueContent)),
            }
        });
        examined.unwrap_or_else(Some)
    }

    fn run_git<T>(
        &mut self,
        point: &RestorePoint,
        act: impl FnOnce(&Git) -> Result<T, GitError>,
    ) -> Result<T, RetentionReason> {
        let problem = |problem: String| RetentionReason::NotExamined { problem: Some(first_line(&problem)) };
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || self.slow.contains(&point.repository) {
            return Err(RetentionReason::NotExamined { problem: None });
        }
        if !point.repository.is_dir() {
            return Err(RetentionReason::Unreachable);
        }
        let git = git(self.environment, &point.top_level, GIT_TIMEOUT.min(left));
        let git = git.map_err(|error| problem(error.to_string()))?;
        act(&git).map_err(|error| {
            if matches!(error, GitError::TimedOut { .. }) {
                self.slow.insert(point.repository.clone());
            }
            problem(error.to_string())
        })
    }
}

/// Drops a restore point and every other one of its task in the same repository: a restore after the task was
/// deleted leaves one that is not recorded.
fn drop_all(git: &Git, task: &TaskId, point: &RestorePoint) -> Result<(), GitError> {
    drop_point(git, point)?;
    let of_task = format!("{}.", reference(task, 0));
    for other in stored_points_named(git, &point.top_level, &of_task).ok().flatten().unwrap_or_default() {
        drop_point(git, &other.point)?;
    }
    Ok(())
}

fn is_gone(git: &Git, point: &RestorePoint) -> bool {
    let is_other = |other: &StoredPoint| other.point.reference != point.reference;
    stored_points_named(git, &point.top_level, &point.reference)
        .is_ok_and(|stored| stored.is_some_and(|all| all.iter().all(is_other)))
}
