//! Retention: about once an hour, deletes tasks and restore points that are older than their retention time.
//!
//! Servers, waiting calls and exiting supervisors only decide whether a pass is due. A separate process does
//! the work, this program with the argument [`PRUNE`]: git may hang, and removing directories waits for the
//! disk. It may be killed at any moment; the next one continues.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_registry::{PruneOutcome, Registry, RegistryError};
use delegator_supervisor::agent::Variables;

use super::background_process::{BackgroundProcess, USUAL_PATH};
use super::retention_clock::{ClockRecord, ClockVerdict, Reading, judge};
use crate::Engine;
use crate::error::{EngineError, Result};
use crate::restore_points::retained::{DropPolicy, PointsToRecord, drop_due_points, to_record};
use crate::shared::format_version::encode;
use crate::system_port::BootTime;
use crate::worktrees::recorded::remove_incomplete_worktree;

/// The argument that makes this program the pruning process.
pub const PRUNE: &str = "prune";

const INTERVAL_MS: i64 = 60 * 60 * 1000;
const MAX_TASKS_PER_PASS: u32 = 1_000;
const MAX_POINTS_PER_PASS: u32 = 200;
/// Time limit for git in all repositories together.
const TOTAL_GIT_TIMEOUT: Duration = Duration::from_secs(5 * 60);

static PRUNING_PROCESS: BackgroundProcess = BackgroundProcess::new("start the pruning process");

#[derive(Debug)]
pub(crate) struct DeletedTasks {
    pub(crate) deleted: Vec<TaskId>,
    /// There may be more; false if this pass deleted no row.
    pub(crate) has_more: bool,
    /// Deleted from the registry, but the directory could not be removed.
    pub(crate) not_removed: Vec<(TaskId, RegistryError)>,
    /// Without a readable record of restore points, or with an incomplete worktree that cannot be removed.
    pub(crate) not_deleted: BTreeMap<TaskId, EngineError>,
}

/// Starts the pruning process, unless a process did so in the last hour and if there is something to
/// delete. I/O errors are left to the next pass: they must not fail the wait that triggered this one.
pub(crate) fn start_pruning_if_due(engine: &Engine, registry: &mut Registry) -> Result<()> {
    match try_start_pruning(engine, registry) {
        Err(EngineError::Io { .. }) => Ok(()),
        other => other,
    }
}

fn try_start_pruning(engine: &Engine, registry: &mut Registry) -> Result<()> {
    PRUNING_PROCESS.reap();
    let Some(retention_ms) = engine.retention_ms else { return Ok(()) };
    let now = engine.now_ms();
    if !registry.claim_periodic_job("retention", INTERVAL_MS, now)? {
        return Ok(());
    }
    let verdict = observe_clock(engine, registry)?;
    let points_before_ms = engine.restore_point_retention_ms.map(|ms| now - ms);
    if verdict != ClockVerdict::Trusted || !is_due(registry, now - retention_ms, points_before_ms)? {
        return Ok(());
    }
    engine.system.start_pruning(engine, now - retention_ms, points_before_ms)
}

/// Deletes up to `limit` tasks that ended before this time, with what there is of worktrees that were
/// never complete. Runs git only for these.
pub(crate) fn delete_some_old_tasks(
    engine: &Engine,
    registry: &mut Registry,
    before_ms: i64,
    limit: u32,
    environment: &Variables,
) -> Result<DeletedTasks> {
    let mut ids = registry.ended_before(before_ms, limit)?;
    let PointsToRecord { by_task, unreadable: mut not_deleted } = to_record(registry, &ids)?;
    for worktree in registry.present_worktrees()?.into_iter().filter(|found| ids.contains(&found.owner)) {
        if let Err(error) = remove_incomplete_worktree(engine, registry, &worktree.owner, environment) {
            not_deleted.insert(worktree.owner, error);
        }
    }
    ids.retain(|id| !not_deleted.contains_key(id));
    let PruneOutcome { pruned: mut deleted, not_removed, .. } = registry.prune_and_record(&ids, &by_task)?;
    let has_more = !deleted.is_empty();
    deleted.retain(|id| not_removed.iter().all(|(failed, _)| failed != id));
    Ok(DeletedTasks { deleted, has_more, not_removed, not_deleted })
}

pub(crate) fn spawn_pruning_process(
    engine: &Engine,
    tasks_before_ms: i64,
    points_before_ms: Option<i64>,
) -> Result<()> {
    let points_before = points_before_ms.map_or_else(|| "never".to_owned(), |time| time.to_string());
    PRUNING_PROCESS.spawn(engine, &[PRUNE, &tasks_before_ms.to_string(), &points_before])
}

pub fn prune(engine: &Engine, tasks_before_ms: i64, points_before_ms: Option<i64>) -> Result<()> {
    let Some(mut registry) = engine.find_registry()? else { return Ok(()) };
    let Some(_lock) = registry.dir().try_lock_pruning()? else { return Ok(()) };
    let environment: Variables = vec![("PATH".into(), USUAL_PATH.into())];
    delete_some_old_tasks(engine, &mut registry, tasks_before_ms, MAX_TASKS_PER_PASS, &environment)?;
    registry.finish_pruning()?;
    let policy = DropPolicy {
        expired_before_ms: points_before_ms,
        drop_all: false,
        limit: MAX_POINTS_PER_PASS,
        deadline: Instant::now() + TOTAL_GIT_TIMEOUT,
        environment: &environment,
    };
    drop_due_points(&mut registry, engine, &policy).map(drop)
}

fn is_due(registry: &Registry, tasks_before_ms: i64, points_before_ms: Option<i64>) -> Result<bool> {
    Ok(!registry.ended_before(tasks_before_ms, 1)?.is_empty()
        || registry.has_unfinished_pruning()?
        || !registry.due_restore_points(points_before_ms.unwrap_or(i64::MIN), 1)?.is_empty())
}

fn observe_clock(engine: &Engine, registry: &mut Registry) -> Result<ClockVerdict> {
    let (verdict, record) = judge(stored_clock(registry)?.as_ref(), read_clocks(engine)?);
    store_clock(registry, &record)?;
    Ok(verdict)
}

/// `None` also if the record cannot be decoded.
pub(super) fn stored_clock(registry: &Registry) -> Result<Option<ClockRecord>> {
    Ok(registry.retention_clock()?.and_then(|text| serde_json::from_str(&text).ok()))
}

pub(super) fn store_clock(registry: &mut Registry, record: &ClockRecord) -> Result<()> {
    Ok(registry.set_retention_clock(&encode("record the clocks", record)?)?)
}

pub(super) fn read_clocks(engine: &Engine) -> Result<Reading> {
    let BootTime { boot_id, since_boot_ms } = engine.system.boot_time()?;
    Ok(Reading { boot_id, boot_ms: since_boot_ms, wall_ms: engine.now_ms() })
}
