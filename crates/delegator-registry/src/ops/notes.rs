//! Records facts that do not change a task's state: its thread, its agent, and that its result was read.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{SandboxKind, TaskEnd, TaskId};

use super::agent_pauses;
use super::attempt::load_attempt;
use crate::compare_and_set::{Attempt, Cas, Nonce};
use crate::error::Result;
use crate::registry::Registry;

/// The agent that runs a task instead of the one before.
#[derive(Debug)]
pub struct AgentChange<'a> {
    pub agent: &'a str,
    /// What enforces the mode of the task.
    pub sandbox: SandboxKind,
    /// How the agent before ended, if it ran.
    pub end: Option<&'a TaskEnd>,
}

pub(crate) const MARK_ALL_READ: &str =
    "UPDATE tasks SET read_at_ms = ?1 WHERE ended_order IS NOT NULL AND read_at_ms IS NULL";

impl Registry {
    /// Stores the thread that the agent announced. Only the supervisor of the current attempt may call this.
    pub fn set_thread(
        &mut self,
        id: &TaskId,
        nonce: &Nonce,
        thread_id: &str,
        now_ms: i64,
    ) -> Result<Cas<()>> {
        let thread_id = self.sink.text(thread_id);
        let attempt = Attempt::working(nonce.clone());
        // Not synced by itself: the end of the task syncs it.
        self.write_unsynced(|db| match load_attempt(db, id, &attempt)? {
            Err(lost) => Ok(Cas::Lost(lost)),
            Ok(stored) => {
                let sql = "UPDATE tasks SET thread_id = ?1, updated_at_ms = ?2 WHERE seq = ?3";
                db.prepare_cached(sql)?.execute((&thread_id, now_ms, stored.seq))?;
                Ok(Cas::Applied(()))
            }
        })
        .inspect(|_| crash_point(CrashPoint::ThreadNoted))
    }

    /// Stores the agent that runs the task from now on. A usage limit pauses the agent before.
    pub fn replace_agent(
        &mut self,
        id: &TaskId,
        nonce: &Nonce,
        AgentChange { agent, sandbox, end }: &AgentChange<'_>,
        now_ms: i64,
    ) -> Result<Cas<()>> {
        self.write_working(id, nonce, |db, stored| {
            if let Some(end) = end {
                agent_pauses::pause_after(db, stored.seq, end, now_ms)?;
            }
            let sql = "UPDATE tasks SET agent = ?1, sandbox = ?2, updated_at_ms = ?3 WHERE seq = ?4";
            db.prepare_cached(sql)?.execute((agent, sandbox.name(), now_ms, stored.seq))?;
            Ok(Cas::Applied(()))
        })
    }

    /// Records whether the changes of the task conflict with those of a work tree. A conflict is news, so the task is
    /// unread again; its end is also that of the other tasks in the same worktree.
    pub fn record_apply_conflict(&mut self, id: &TaskId, has_conflict: bool) -> Result<()> {
        let sql = if has_conflict {
            "UPDATE tasks SET has_apply_conflict = 1, read_at_ms = NULL WHERE id = ?1"
        } else {
            "UPDATE tasks SET has_apply_conflict = 0 WHERE has_apply_conflict = 1 AND (id = ?1 OR worktree = ?1)"
        };
        self.write_unsynced(|db| db.prepare_cached(sql)?.execute([id.as_str()]).map(drop))
    }

    /// Records that all results were read; returns how many were not before.
    pub fn mark_all_read(&mut self, now_ms: i64) -> Result<usize> {
        self.write_unsynced(|db| db.execute(MARK_ALL_READ, [now_ms]))
    }

    /// Records that the result was read; true the first time.
    pub fn mark_read(&mut self, id: &TaskId, now_ms: i64) -> Result<bool> {
        // Read first: usually it is already marked, and the write lock would delay other processes.
        let unread = "SELECT EXISTS (SELECT 1 FROM tasks \
                      WHERE id = ?1 AND ended_order IS NOT NULL AND read_at_ms IS NULL)";
        if !self.read(|db| db.prepare_cached(unread)?.query_row([id.as_str()], |row| row.get(0)))? {
            return Ok(false);
        }
        // Not synced: the caller waits for its response, and after a power cut the task is only listed as
        // unread.
        self.write_unsynced(|db| {
            let sql = "UPDATE tasks SET read_at_ms = ?1 \
                       WHERE id = ?2 AND ended_order IS NOT NULL AND read_at_ms IS NULL";
            Ok(db.prepare_cached(sql)?.execute((now_ms, id.as_str()))? == 1)
        })
    }
}
