//! Pauses of agents: while an agent is paused, its queued tasks do not start.
//!
//! The end of a task with a usage limit pauses its agent, in the transaction of the end, so that no further
//! task of the agent is claimed and fails. A pause that is over is ignored and stays until the next one
//! replaces it.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{FailureKind, TaskEnd, TaskId};
use rusqlite::Connection;

use crate::columns::record;
use crate::error::Result;
use crate::registry::{Registry, query_all};

/// How long a usage limit pauses the agent if it did not report when the limit resets.
const DEFAULT_PAUSE_MS: i64 = 15 * 60 * 1000;

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AgentPause {
        pub agent: String,
        /// `None`: until it is resumed.
        pub until_ms: Option<i64>,
        pub reason: String,
        /// The task whose end caused it.
        pub task: Option<TaskId>,
        pub since_ms: i64,
    }
}

const PAUSES: &str = "SELECT * FROM agent_pauses WHERE until_ms IS NULL OR until_ms > ?1 ORDER BY agent";
/// A pause never becomes shorter.
const EXTEND: &str = "INSERT INTO agent_pauses (agent, until_ms, reason, task, since_ms) \
     SELECT agent, ?2, ?3, id, ?4 FROM tasks WHERE seq = ?1 \
     ON CONFLICT (agent) DO UPDATE SET until_ms = excluded.until_ms, reason = excluded.reason, task = excluded.task, \
     since_ms = excluded.since_ms WHERE until_ms < excluded.until_ms";

impl Registry {
    /// Pauses an agent until it is resumed; true if it was not paused without an end before.
    pub fn pause_agent(&mut self, agent: &str, reason: &str, now_ms: i64) -> Result<bool> {
        let (agent, reason) = (self.sink.text(agent), self.sink.text(reason));
        let sql = "INSERT INTO agent_pauses (agent, until_ms, reason, task, since_ms) VALUES (?1, NULL, ?2, NULL, ?3) \
                   ON CONFLICT (agent) DO UPDATE SET until_ms = NULL, reason = excluded.reason, task = NULL, \
                   since_ms = excluded.since_ms WHERE until_ms IS NOT NULL";
        let changed = self.write(|db| db.execute(sql, (agent, reason, now_ms)))?;
        crash_point(CrashPoint::QueueHeld);
        Ok(changed == 1)
    }

    /// Ends the pause of an agent; true if it was paused.
    pub fn resume_agent(&mut self, agent: &str, now_ms: i64) -> Result<bool> {
        let agent = self.sink.text(agent);
        let sql = "DELETE FROM agent_pauses WHERE agent = ?1 RETURNING until_ms IS NULL OR until_ms > ?2";
        let paused = self.write(|db| {
            let mut statement = db.prepare(sql)?;
            let mut rows = statement.query_map((agent, now_ms), |row| row.get::<_, bool>(0))?;
            rows.next().transpose()
        })?;
        crash_point(CrashPoint::QueueHeld);
        Ok(paused.unwrap_or(false))
    }

    pub fn agent_pauses(&self, now_ms: i64) -> Result<Vec<AgentPause>> {
        self.read(|db| pauses(db, now_ms))
    }
}

pub(crate) fn pauses(db: &Connection, now_ms: i64) -> rusqlite::Result<Vec<AgentPause>> {
    query_all(db, PAUSES, [now_ms], AgentPause::from_row)
}

/// Pauses the agent of a task that ended because of a usage limit.
pub(crate) fn pause_after(db: &Connection, seq: i64, end: &TaskEnd, now_ms: i64) -> rusqlite::Result<()> {
    let TaskEnd::Failed { kind: FailureKind::UsageLimit, message, retry_at_ms } = end else { return Ok(()) };
    let until_ms = retry_at_ms.unwrap_or(now_ms + DEFAULT_PAUSE_MS);
    if until_ms <= now_ms {
        return Ok(());
    }
    db.execute(EXTEND, (seq, until_ms, message, now_ms)).map(drop)
}
