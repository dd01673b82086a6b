//! Claiming: which waiting task starts next.
//!
//! Oldest first. Whether a task may start beside those that run is the caller's law, given as a function; one that may
//! not is overtaken. How many run is counted over the whole state directory, under the write lock, so that no two
//! claimers can take the same slot.

use std::fmt;

use delegator_domain::task::{Mode, State, TaskId};
use rusqlite::{Connection, Row};

use crate::error::RegistryError;
use crate::registry::Registry;
use crate::row;
use crate::task::{Nonce, Task};

const RUNNING: &str = "SELECT id, mode, work_tree, allow_parallel_writes, resumed_thread, thread_id \
     FROM tasks WHERE state IN ('starting', 'working')";

/// What a claimer brings along.
pub struct Promotion<'a> {
    pub max_concurrent: usize,
    /// Whether a waiting task may start beside the running ones.
    pub may_start: &'a dyn Fn(&Waiting, &[Running]) -> bool,
    /// A fresh nonce for each claim.
    pub fresh_nonce: &'a dyn Fn() -> Nonce,
}

impl fmt::Debug for Promotion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Promotion").field("max_concurrent", &self.max_concurrent).finish_non_exhaustive()
    }
}

/// A queued task, as far as it matters for whether it may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub seq: i64,
    pub id: TaskId,
    pub mode: Mode,
    pub work_tree: Option<String>,
    pub allow_parallel_writes: bool,
    pub resumed_thread: Option<String>,
}

/// A starting or working task, as far as it stands in another's way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub id: TaskId,
    pub mode: Mode,
    pub work_tree: Option<String>,
    pub allow_parallel_writes: bool,
    /// The threads it works on: the one it resumed and the one it announced.
    pub threads: Vec<String>,
}

/// A task that is to be started by whoever got this.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    pub task: Task,
    pub nonce: Nonce,
}

impl Registry {
    /// Claims the oldest task that may start, if a slot is free.
    pub fn claim_next(
        &mut self,
        promotion: &Promotion<'_>,
        now_ms: i64,
    ) -> Result<Option<Claimed>, RegistryError> {
        // One cheap look first: most of the time there is nothing to do, and the write lock is everybody's.
        if !self.read(is_worth_trying(promotion))? {
            return Ok(None);
        }
        self.write(|db| Ok(claim(db, promotion, 1, now_ms)?.pop()))
    }

    /// Claims as many as there are free slots.
    pub fn claim_all(
        &mut self,
        promotion: &Promotion<'_>,
        now_ms: i64,
    ) -> Result<Vec<Claimed>, RegistryError> {
        if !self.read(is_worth_trying(promotion))? {
            return Ok(Vec::new());
        }
        self.write(|db| claim(db, promotion, usize::MAX, now_ms))
    }

    /// Stops or resumes claiming. What runs goes on.
    pub fn set_queue_paused(&mut self, paused: bool) -> Result<(), RegistryError> {
        self.write(|db| {
            let sql = "INSERT INTO meta (key, value) VALUES ('queue_paused', ?1) \
                       ON CONFLICT (key) DO UPDATE SET value = excluded.value";
            db.execute(sql, [paused]).map(drop)
        })
    }

    pub fn queue_paused(&self) -> Result<bool, RegistryError> {
        self.read(is_paused)
    }
}

fn is_paused(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'queue_paused' AND value = 1)", (), |row| {
        row.get(0)
    })
}

fn is_worth_trying(promotion: &Promotion<'_>) -> impl Fn(&Connection) -> rusqlite::Result<bool> {
    let slots = i64::try_from(promotion.max_concurrent).unwrap_or(i64::MAX);
    move |db| {
        let sql = "SELECT EXISTS (SELECT 1 FROM tasks WHERE state = 'queued') \
                   AND (SELECT count(*) FROM tasks WHERE state IN ('starting', 'working')) < ?1";
        db.query_row(sql, [slots], |row| row.get(0))
    }
}

/// Claims inside a transaction that has the write lock.
pub(crate) fn claim(
    db: &Connection,
    promotion: &Promotion<'_>,
    at_most: usize,
    now_ms: i64,
) -> rusqlite::Result<Vec<Claimed>> {
    let mut claimed = Vec::new();
    if !is_worth_trying(promotion)(db)? || is_paused(db)? {
        return Ok(claimed);
    }
    let mut running: Vec<Running> =
        db.prepare(RUNNING)?.query_map((), running_from)?.collect::<rusqlite::Result<_>>()?;
    let mut after = 0;
    while claimed.len() < at_most && running.len() < promotion.max_concurrent {
        let Some(next) = next_that_may(db, after, &running, promotion)? else { break };
        after = next.seq;
        let nonce = (promotion.fresh_nonce)();
        row::apply(db, next.seq, row::lawful(State::Queued, State::Starting)?, "claimed", now_ms)?;
        let sql = "UPDATE tasks SET nonce = ?1, claimed_at_ms = ?2, starts = starts + 1 WHERE seq = ?3";
        db.execute(sql, (nonce.as_str(), now_ms, next.seq))?;
        let task = row::task_at(db, next.seq)?;
        let threads = next.resumed_thread.into_iter().collect();
        let Waiting { id, mode, work_tree, allow_parallel_writes, .. } = next;
        running.push(Running { id, mode, work_tree, allow_parallel_writes, threads });
        claimed.push(Claimed { task, nonce });
    }
    Ok(claimed)
}

fn next_that_may(
    db: &Connection,
    after: i64,
    running: &[Running],
    promotion: &Promotion<'_>,
) -> rusqlite::Result<Option<Waiting>> {
    let sql = "SELECT seq, id, mode, work_tree, allow_parallel_writes, resumed_thread \
               FROM tasks WHERE state = 'queued' AND seq > ?1 ORDER BY seq";
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([after])?;
    while let Some(row) = rows.next()? {
        let waiting = waiting_from(row)?;
        if (promotion.may_start)(&waiting, running) {
            return Ok(Some(waiting));
        }
    }
    Ok(None)
}

fn waiting_from(row: &Row<'_>) -> rusqlite::Result<Waiting> {
    Ok(Waiting {
        seq: row.get("seq")?,
        id: row::id_from(row)?,
        mode: row::mode_from(row)?,
        work_tree: row.get("work_tree")?,
        allow_parallel_writes: row.get("allow_parallel_writes")?,
        resumed_thread: row.get("resumed_thread")?,
    })
}

fn running_from(row: &Row<'_>) -> rusqlite::Result<Running> {
    let resumed: Option<String> = row.get("resumed_thread")?;
    let announced: Option<String> = row.get("thread_id")?;
    Ok(Running {
        id: row::id_from(row)?,
        mode: row::mode_from(row)?,
        work_tree: row.get("work_tree")?,
        allow_parallel_writes: row.get("allow_parallel_writes")?,
        threads: resumed.into_iter().chain(announced).collect(),
    })
}
