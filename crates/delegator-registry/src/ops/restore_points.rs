//! Records of restore points whose task has been pruned.
//!
//! They are inserted in the transaction that deletes the task's row, so a crash never leaves an unknown
//! restore point. This module stores a restore point as text; the engine interprets it and decides whether to
//! drop it.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::TaskId;
use rusqlite::Connection;

use crate::columns::record;
use crate::database::schema::{meta, set_meta};
use crate::error::Result;
use crate::registry::{Registry, query_all};

/// A restore point to record when its task's row is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointToRecord {
    pub repository: String,
    pub reference: String,
    pub point: String,
}

record! {
    /// A restore point whose task's row is gone.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RecordedPoint {
        pub task: TaskId,
        pub repository: String,
        pub reference: String,
        pub point: String,
        pub task_ended_at_ms: i64,
        /// Why it is retained; `None` until it has been examined.
        pub reason: Option<String>,
    }
}

/// A restore point with this reason is not examined again until it expires.
pub const HOLDS_UNIQUE_CONTENT: &str = "unique";

pub(crate) const DUE: &str = "SELECT * FROM restore_points INDEXED BY restore_points_tried \
     WHERE reason IS NULL OR reason <> 'unique' OR task_ended_at_ms < ?1 ORDER BY tried_at_ms LIMIT ?2";

impl Registry {
    /// To be examined, or dropped if their task ended before the time; the longest unexamined first.
    pub fn due_restore_points(&self, ended_before_ms: i64, limit: u32) -> Result<Vec<RecordedPoint>> {
        self.read(|db| query_all(db, DUE, (ended_before_ms, limit), RecordedPoint::from_row))
    }

    /// All recorded restore points, the longest unexamined first.
    pub fn restore_points(&self, limit: u32) -> Result<Vec<RecordedPoint>> {
        let sql = "SELECT * FROM restore_points ORDER BY tried_at_ms LIMIT ?1";
        self.read(|db| query_all(db, sql, [limit], RecordedPoint::from_row))
    }

    pub fn restore_points_of(&self, task: &TaskId) -> Result<Vec<RecordedPoint>> {
        let sql = "SELECT * FROM restore_points WHERE task = ?1 ORDER BY repository, reference";
        self.read(|db| query_all(db, sql, [task.as_str()], RecordedPoint::from_row))
    }

    pub fn count_restore_points(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM restore_points";
        self.read(|db| db.query_row(sql, (), |row| row.get(0)))
    }

    pub fn retain_restore_point(&mut self, point: &RecordedPoint, reason: &str, now_ms: i64) -> Result<()> {
        let sql = "UPDATE restore_points SET reason = ?1, tried_at_ms = ?2 \
                   WHERE task = ?3 AND repository = ?4 AND reference = ?5";
        let RecordedPoint { task, repository, reference, .. } = point;
        self.write(|db| db.execute(sql, (reason, now_ms, task.as_str(), repository, reference)).map(drop))
    }

    pub fn delete_restore_point_record(&mut self, point: &RecordedPoint) -> Result<()> {
        let sql = "DELETE FROM restore_points WHERE task = ?1 AND repository = ?2 AND reference = ?3";
        let key = (point.task.as_str(), &point.repository, &point.reference);
        self.write(|db| db.execute(sql, key).map(drop))
            .inspect(|()| crash_point(CrashPoint::RestorePointForgotten))
    }

    pub fn retention_clock(&self) -> Result<Option<String>> {
        self.read(|db| meta(db, "retention_clock"))
    }

    pub fn set_retention_clock(&mut self, clock: &str) -> Result<()> {
        self.write(|db| set_meta(db, "retention_clock", clock))
            .inspect(|()| crash_point(CrashPoint::RetentionClockNoted))
    }
}

pub(crate) fn record(
    db: &Connection,
    seq: i64,
    task: &TaskId,
    points: &[PointToRecord],
) -> rusqlite::Result<()> {
    let sql = "INSERT OR IGNORE INTO restore_points (task, repository, reference, point, task_ended_at_ms) \
               SELECT ?1, ?2, ?3, ?4, coalesce(imported_at_ms, ended_at_ms) FROM tasks WHERE seq = ?5";
    let mut insert = db.prepare_cached(sql)?;
    for point in points {
        insert.execute((task.as_str(), &point.repository, &point.reference, &point.point, seq))?;
    }
    Ok(())
}
