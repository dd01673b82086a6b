//! Worktrees of tasks. This module stores what the engine knows about a worktree as text; the engine
//! interprets it.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::TaskId;
use rusqlite::{Connection, OptionalExtension};

use crate::columns::record;
use crate::error::Result;
use crate::registry::{Registry, query_all};
use crate::task::id_from;

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredWorktree {
        pub owner: TaskId,
        pub path: String,
        pub facts: String,
        pub created_at_ms: Option<i64>,
        pub applied_at_ms: Option<i64>,
        pub removed_at_ms: Option<i64>,
        pub bytes: Option<u64>,
    }
}

impl StoredWorktree {
    pub fn is_present(&self) -> bool {
        self.created_at_ms.is_some() && self.removed_at_ms.is_none()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeEvent {
    Created,
    Applied,
    Removed,
}

impl Registry {
    pub fn worktree(&self, owner: &TaskId) -> Result<Option<StoredWorktree>> {
        let sql = "SELECT * FROM worktrees WHERE owner = ?1";
        self.read(|db| db.query_row(sql, [owner.as_str()], StoredWorktree::from_row).optional())
    }

    pub fn present_worktrees(&self) -> Result<Vec<StoredWorktree>> {
        let sql =
            "SELECT * FROM worktrees INDEXED BY worktrees_present WHERE removed_at_ms IS NULL ORDER BY task";
        self.read(|db| query_all(db, sql, (), StoredWorktree::from_row))
    }

    /// The tasks that work in a worktree or will, and have not ended.
    pub fn live_tasks_in_worktree(&self, owner: &TaskId) -> Result<Vec<TaskId>> {
        let sql = "SELECT id FROM tasks WHERE worktree = ?1 AND state IN ('queued', 'starting', 'working') ORDER BY seq";
        self.read(|db| query_all(db, sql, [owner.as_str()], id_from))
    }

    /// All tasks that worked in it, or will, in order of their submission.
    pub fn tasks_in_worktree(&self, owner: &TaskId) -> Result<Vec<TaskId>> {
        let sql = "SELECT id FROM tasks WHERE worktree = ?1 ORDER BY seq";
        self.read(|db| query_all(db, sql, [owner.as_str()], id_from))
    }

    /// Records an event; the time of an earlier one of the same kind is replaced.
    pub fn record_worktree(&mut self, owner: &TaskId, event: WorktreeEvent, now_ms: i64) -> Result<()> {
        let changes = match event {
            WorktreeEvent::Created => "created_at_ms = ?1, removed_at_ms = NULL",
            WorktreeEvent::Applied => "applied_at_ms = ?1",
            WorktreeEvent::Removed => "removed_at_ms = ?1",
        };
        let sql = format!("UPDATE worktrees SET {changes} WHERE owner = ?2");
        self.write(|db| db.execute(&sql, (now_ms, owner.as_str())).map(drop))
            .inspect(|()| crash_point(CrashPoint::WorktreeRecorded))
    }

    pub fn record_worktree_size(&mut self, owner: &TaskId, bytes: u64) -> Result<()> {
        let sql = "UPDATE worktrees SET bytes = ?1 WHERE owner = ?2";
        self.write(|db| db.execute(sql, (bytes, owner.as_str())).map(drop))
    }
}

pub(crate) fn has_present(db: &Connection, seq: i64) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM worktrees \
               WHERE task = ?1 AND created_at_ms IS NOT NULL AND removed_at_ms IS NULL)";
    db.query_row(sql, [seq], |row| row.get(0))
}
