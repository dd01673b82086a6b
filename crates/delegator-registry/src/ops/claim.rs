//! Claims the queued tasks that start next.
//!
//! Oldest first; a task whose predecessor has not ended is passed over. A task that is blocked by a running
//! or earlier task is overtaken by tasks that do not conflict with either. Tasks of a paused agent are passed
//! over. Running tasks are counted over the whole state directory under the write lock, so that no two
//! processes take the same slot.

use std::fmt;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{Claimant, Mode, Obstacle, State, TaskId, Transition};
use rusqlite::{Connection, Row};

use super::agent_pauses::{self, AgentPause};
use crate::columns::{Column, record};
use crate::compare_and_set::Nonce;
use crate::database::schema::{meta, set_meta};
use crate::error::Result;
use crate::registry::{Registry, query_all};
use crate::row;
use crate::task::{Task, id_from, work_trees_from};

pub(crate) const RUNNING: &str = "SELECT id, mode, mode_enforced, work_tree, more_work_trees, \
     allow_parallel_writes, resumed_thread, thread_id FROM tasks WHERE provider IS NULL \
     AND state IN ('starting', 'working')";
pub(crate) const WAITING: &str = "SELECT seq, id, mode, mode_enforced, work_tree, more_work_trees, \
     allow_parallel_writes, resumed_thread, thread_id, agent, fallbacks > 0 AS has_fallback, \
     CASE WHEN awaits IS NOT NULL THEN follows END AS predecessor FROM tasks \
     WHERE provider IS NULL AND state = 'queued' ORDER BY seq";
pub(crate) const RUNNING_COUNT: &str =
    "SELECT count(*) FROM tasks WHERE provider IS NULL AND state IN ('starting', 'working')";
/// Whether a task waits whose predecessor has ended and whose agent is not paused, while fewer than `?2`
/// tasks run.
pub(crate) const MAY_CLAIM: &str = "SELECT EXISTS (SELECT 1 FROM tasks WHERE provider IS NULL AND state = 'queued' \
     AND awaits IS NULL AND (fallbacks > 0 OR agent NOT IN (SELECT agent FROM agent_pauses WHERE until_ms IS NULL OR until_ms > ?1))) \
     AND (SELECT count(*) FROM tasks WHERE provider IS NULL AND state IN ('starting', 'working')) < ?2";

/// The claimer locks and starts its claims one after the other, and an unlocked claim looks abandoned. So
/// limit the number.
pub const MAX_CLAIMS_PER_CALL: usize = 32;

pub struct Promotion<'a> {
    pub max_concurrent: usize,
    pub fresh_nonce: &'a dyn Fn() -> Nonce,
}

impl fmt::Debug for Promotion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Promotion").field("max_concurrent", &self.max_concurrent).finish_non_exhaustive()
    }
}

/// A claimed task, which the caller must start.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub task: Task,
    pub nonce: Nonce,
}

/// Why a queued task cannot start even if a slot is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedBy {
    pub task: TaskId,
    pub obstacle: Obstacle,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueEntry {
    pub id: TaskId,
    /// Set while its agent is paused.
    pub pause: Option<AgentPause>,
    /// `None` if it only waits for a slot, or for the end of the pause.
    pub blocked_by: Option<BlockedBy>,
}

impl Registry {
    /// Claims the oldest task that may start, if a slot is free.
    pub fn claim_next(&mut self, promotion: &Promotion<'_>, now_ms: i64) -> Result<Option<Claim>> {
        // Read first: usually there is nothing to do, and the write lock would delay other processes.
        if !self.can_claim(promotion, now_ms)? {
            return Ok(None);
        }
        self.write(|db| Ok(claim(db, promotion, 1, now_ms)?.pop()))
    }

    /// Claims one task per free slot, but at most [`MAX_CLAIMS_PER_CALL`]. A caller that got that many should
    /// call again.
    pub fn claim_all(&mut self, promotion: &Promotion<'_>, now_ms: i64) -> Result<Vec<Claim>> {
        if !self.can_claim(promotion, now_ms)? {
            return Ok(Vec::new());
        }
        // A power cut that undoes the claim also ends what was started for it.
        self.write_unsynced(|db| claim(db, promotion, MAX_CLAIMS_PER_CALL, now_ms))
            .inspect(|_| crash_point(CrashPoint::ClaimCommitted))
    }

    /// Whether a claim could succeed: a task is queued, a slot is free, and neither queue nor agent is
    /// paused.
    pub fn can_claim(&self, promotion: &Promotion<'_>, now_ms: i64) -> Result<bool> {
        self.read(|db| may_claim(db, promotion, now_ms))
    }

    pub fn running_count(&self) -> Result<usize> {
        self.read(|db| db.prepare_cached(RUNNING_COUNT)?.query_row((), |row| row.get(0)))
    }

    /// Pauses or resumes claiming. Running tasks continue.
    pub fn set_queue_paused(&mut self, paused: bool) -> Result<()> {
        self.write(|db| set_meta(db, "queue_paused", paused)).inspect(|()| crash_point(CrashPoint::QueueHeld))
    }

    pub fn queue_paused(&self) -> Result<bool> {
        self.read(is_paused)
    }

    /// Claims the job if no process has claimed it within the last `every_ms`. A claim in the future was made
    /// before the clock was set back, and is ignored.
    pub fn claim_periodic_job(&mut self, name: &str, every_ms: i64, now_ms: i64) -> Result<bool> {
        let key = format!("turn_{name}");
        let is_due = |db: &Connection| -> rusqlite::Result<bool> {
            Ok(meta(db, &key)?.is_none_or(|last: i64| !(0..every_ms).contains(&(now_ms - last))))
        };
        if !self.read(is_due)? {
            return Ok(false);
        }
        self.write(|db| {
            let claimed = is_due(db)?;
            if claimed {
                set_meta(db, &key, now_ms)?;
            }
            Ok(claimed)
        })
        .inspect(|_| crash_point(CrashPoint::RetentionTurnTaken))
    }

    pub fn queue_with_blockers(&self, now_ms: i64) -> Result<Vec<QueueEntry>> {
        self.read(|db| {
            let pauses = agent_pauses::pauses(db, now_ms)?;
            let mut scan = QueueScan::of(db)?;
            let check = |waiting: Waiting| {
                let id = waiting.claimant.id.clone();
                if let Some(predecessor) = waiting.predecessor {
                    return QueueEntry { id, pause: None, blocked_by: Some(follower_of(predecessor)) };
                }
                match waiting.pause(&pauses) {
                    Some(pause) => QueueEntry { id, pause: Some(pause.clone()), blocked_by: None },
                    None => QueueEntry { id, pause: None, blocked_by: scan.check_and_add(waiting.claimant) },
                }
            };
            Ok(query_all(db, WAITING, (), Waiting::from_row)?.into_iter().map(check).collect())
        })
    }

    /// The running task that blocks this one, or its predecessor.
    pub fn blocked_by_running(&self, task: &Task) -> Result<Option<BlockedBy>> {
        if let Some(follows) = task.follows.as_ref().filter(|_| task.awaits_predecessor) {
            return Ok(Some(follower_of(follows.task.clone())));
        }
        let claimant = Claimant {
            id: task.id.clone(),
            may_write: task.may_write(),
            work_trees: task.work_trees.clone(),
            allow_parallel_writes: task.allow_parallel_writes,
            threads: task.resumed_thread.iter().chain(&task.thread_id).cloned().collect(),
        };
        self.read(|db| Ok(QueueScan::of(db)?.blocker_of(&claimant)))
    }
}

record! {
    struct Waiting {
        seq: i64,
        agent: String,
        /// Another agent may run it while this one is paused.
        has_fallback: bool,
        /// Its predecessor, if that has not ended.
        predecessor: Option<TaskId>,
        claimant: Claimant = claimant_from,
    }
}

fn follower_of(task: TaskId) -> BlockedBy {
    BlockedBy { task, obstacle: Obstacle::Predecessor }
}

impl Waiting {
    fn pause<'a>(&self, pauses: &'a [AgentPause]) -> Option<&'a AgentPause> {
        pauses.iter().find(|pause| pause.agent == self.agent && !self.has_fallback)
    }
}

/// The tasks ahead of a queued task: running ones, and earlier queued ones.
struct QueueScan {
    ahead: Vec<Claimant>,
}

impl QueueScan {
    fn of(db: &Connection) -> rusqlite::Result<QueueScan> {
        let running = query_all(db, RUNNING, (), claimant_from)?;
        Ok(QueueScan { ahead: running })
    }

    fn blocker_of(&self, claimant: &Claimant) -> Option<BlockedBy> {
        let (other, obstacle) = claimant.blocked_by(&self.ahead)?;
        Some(BlockedBy { task: other.id.clone(), obstacle })
    }

    /// Returns what blocks the task, and adds it for those behind it. A task that is covered by an earlier
    /// one is not added, so a thousand tasks that wait for one tree cost one entry.
    fn check_and_add(&mut self, claimant: Claimant) -> Option<BlockedBy> {
        let blocked_by = self.blocker_of(&claimant);
        if !self.ahead.iter().any(|other| claimant.is_covered_by(other)) {
            self.ahead.push(claimant);
        }
        blocked_by
    }
}

fn is_paused(db: &Connection) -> rusqlite::Result<bool> {
    Ok(meta(db, "queue_paused")?.unwrap_or(false))
}

fn may_claim(db: &Connection, promotion: &Promotion<'_>, now_ms: i64) -> rusqlite::Result<bool> {
    let slots = i64::try_from(promotion.max_concurrent).unwrap_or(i64::MAX);
    Ok(db.prepare_cached(MAY_CLAIM)?.query_row((now_ms, slots), |row| row.get(0))? && !is_paused(db)?)
}

/// Claims inside a transaction that holds the write lock.
pub(crate) fn claim(
    db: &Connection,
    promotion: &Promotion<'_>,
    max_claims: usize,
    now_ms: i64,
) -> rusqlite::Result<Vec<Claim>> {
    if !may_claim(db, promotion, now_ms)? {
        return Ok(Vec::new());
    }
    let pauses = agent_pauses::pauses(db, now_ms)?;
    let mut scan = QueueScan::of(db)?;
    let free = promotion.max_concurrent.saturating_sub(scan.ahead.len()).min(max_claims);
    let mut chosen = Vec::new();
    let mut statement = db.prepare_cached(WAITING)?;
    let mut rows = statement.query_map((), Waiting::from_row)?;
    while chosen.len() < free
        && let Some(row) = rows.next()
    {
        let waiting = row?;
        if waiting.predecessor.is_none()
            && waiting.pause(&pauses).is_none()
            && scan.check_and_add(waiting.claimant).is_none()
        {
            chosen.push(waiting.seq);
        }
    }
    // End the query before the rows change.
    drop(rows);
    chosen.into_iter().map(|seq| mark_claimed(db, seq, (promotion.fresh_nonce)(), now_ms)).collect()
}

fn mark_claimed(db: &Connection, seq: i64, nonce: Nonce, now_ms: i64) -> rusqlite::Result<Claim> {
    let change = Transition { from: State::Queued, to: State::Starting };
    row::apply_transition(db, seq, change, "claimed", now_ms)?;
    let sql = "UPDATE tasks SET nonce = ?1, claimed_at_ms = ?2, starts = starts + 1 WHERE seq = ?3";
    db.prepare_cached(sql)?.execute((nonce.as_str(), now_ms, seq))?;
    Ok(Claim { task: row::task_at(db, seq)?, nonce })
}

fn claimant_from(row: &Row<'_>) -> rusqlite::Result<Claimant> {
    let resumed: Option<String> = row.get("resumed_thread")?;
    let announced: Option<String> = row.get("thread_id")?;
    Ok(Claimant {
        id: id_from(row)?,
        may_write: Mode::read(row, "mode")?.may_write(row.get("mode_enforced")?),
        work_trees: work_trees_from(row)?,
        allow_parallel_writes: row.get("allow_parallel_writes")?,
        threads: resumed.into_iter().chain(announced).collect(),
    })
}
