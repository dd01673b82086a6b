//! Read-only queries. None of them scans the whole table; `query_plan_tests` checks that each uses an index.

use std::collections::BTreeMap;

use delegator_domain::task::{Mode, State, TaskId, TaskIdPrefix, TaskLocation, WorkTree};
use rusqlite::{OptionalExtension, Row};

use super::list::DirectoryRange;
use crate::columns::{Column, record};
use crate::compare_and_set::Nonce;
use crate::error::Result;
use crate::registry::{Registry, query_all};
use crate::row;
use crate::task::{CancelRequest, Identity, Task, cancel_from, id_from, identity_from, work_trees_from};

/// How many of the ids that match a prefix are listed.
const MAX_AMBIGUOUS: u32 = 10;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateCounts(BTreeMap<State, u64>);

impl StateCounts {
    pub fn of(&self, state: State) -> u64 {
        self.0.get(&state).copied().unwrap_or(0)
    }

    pub fn iter(&self) -> impl Iterator<Item = (State, u64)> + '_ {
        self.0.iter().map(|(state, count)| (*state, *count))
    }
}

record! {
    /// A starting or working task of this machine, with what a rescuer needs to examine it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ActiveTask {
        pub seq: i64,
        pub id: TaskId,
        pub state: State,
        pub nonce: Nonce,
        pub starts: u32,
        pub claimed_at_ms: i64,
        pub started_at_ms: Option<i64>,
        pub supervisor: Option<Identity> = identity_from,
        pub cancel: Option<CancelRequest> = cancel_from,
    }
}

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct HistoryEntry {
        /// Increases with every transition of any task, regardless of the clock.
        pub order: i64,
        pub from: Option<State>,
        pub to: State,
        pub at_ms: i64,
        pub cause: String,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadResults {
    pub count: u64,
    pub ids: Vec<TaskId>,
}

pub(crate) const COUNTS: &str = "SELECT state, count(*) AS number FROM tasks GROUP BY state";
pub(crate) const ACTIVE: &str =
    "SELECT * FROM tasks WHERE provider IS NULL AND state IN ('starting', 'working') ORDER BY seq";
pub(crate) const BY_THREAD: &str =
    "SELECT * FROM tasks WHERE thread_id = ?1 OR resumed_thread = ?1 ORDER BY seq DESC LIMIT ?2";
pub(crate) const KNOWS_THREAD: &str = "SELECT EXISTS (SELECT 1 FROM tasks WHERE thread_id = ?1) \
     OR EXISTS (SELECT 1 FROM tasks WHERE resumed_thread = ?1 AND ended_order IS NULL)";
pub(crate) const THREADS: &str =
    "SELECT DISTINCT thread_id FROM tasks INDEXED BY tasks_thread WHERE thread_id IS NOT NULL LIMIT ?1";
pub(crate) const ENDED_BEFORE: &str = "SELECT id FROM tasks INDEXED BY tasks_retention \
     WHERE ended_order IS NOT NULL AND coalesce(imported_at_ms, ended_at_ms) < ?1 \
     AND seq NOT IN (SELECT task FROM worktrees WHERE created_at_ms IS NOT NULL AND removed_at_ms IS NULL) \
     ORDER BY coalesce(imported_at_ms, ended_at_ms) LIMIT ?2";
pub(crate) const COUNT_ENDED_BEFORE: &str = "SELECT count(*) FROM tasks INDEXED BY tasks_retention \
     WHERE ended_order IS NOT NULL AND coalesce(imported_at_ms, ended_at_ms) < ?1 \
     AND seq NOT IN (SELECT task FROM worktrees WHERE created_at_ms IS NOT NULL AND removed_at_ms IS NULL)";
pub(crate) const QUEUE: &str =
    "SELECT * FROM tasks WHERE provider IS NULL AND state = 'queued' ORDER BY seq LIMIT ?1";
pub(crate) const POSITION: &str = "SELECT count(*) - (SELECT count(*) FROM tasks WHERE awaits IS NOT NULL AND seq < ?1) \
     FROM tasks WHERE provider IS NULL AND state = 'queued' AND seq < ?1";
pub(crate) const PREFIX: &str = "SELECT id FROM tasks WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3";
pub(crate) const UNREAD: &str = "SELECT count(*) FROM tasks INDEXED BY tasks_unread \
     WHERE ended_order IS NOT NULL AND read_at_ms IS NULL AND working_dir >= ?1 AND working_dir < ?2 \
     AND (working_dir = ?1 OR working_dir >= ?3) AND id GLOB ?4";
pub(crate) const UNREAD_IDS: &str = "SELECT id FROM tasks INDEXED BY tasks_unread \
     WHERE ended_order IS NOT NULL AND read_at_ms IS NULL AND working_dir >= ?1 AND working_dir < ?2 \
     AND (working_dir = ?1 OR working_dir >= ?3) AND id GLOB ?4 ORDER BY seq DESC LIMIT ?5";

// Two tasks overlap by the order of their transitions, not by times, because clocks can go backwards. These
// statements repeat `Mode::may_write`.
pub(crate) const RUNNING_WRITERS: &str = "SELECT id, work_tree, more_work_trees FROM tasks \
     WHERE state IN ('starting', 'working') AND (mode <> ?1 OR NOT mode_enforced) AND id <> ?2";
pub(crate) const ENDED_WRITERS: &str = "SELECT id, work_tree, more_work_trees FROM tasks INDEXED BY tasks_ended \
     WHERE ended_order > ?3 AND started_at_ms IS NOT NULL AND (mode <> ?1 OR NOT mode_enforced) AND id <> ?2";
pub(crate) const START_ORDER: &str = "SELECT work_tree, more_work_trees, \
     (SELECT max(n) FROM transitions WHERE task = tasks.seq) AS began FROM tasks WHERE id = ?1";

impl Registry {
    pub fn get(&self, id: &TaskId) -> Result<Option<Task>> {
        self.read(|db| {
            db.prepare_cached("SELECT * FROM tasks WHERE id = ?1")?
                .query_row([id.as_str()], Task::from_row)
                .optional()
        })
    }

    /// The request to cancel a task; `None` also if the task does not exist.
    pub fn cancel_request(&self, id: &TaskId) -> Result<Option<CancelRequest>> {
        self.read(|db| {
            db.prepare_cached("SELECT cancel_requested_at_ms, cancel_reason FROM tasks WHERE id = ?1")?
                .query_row([id.as_str()], cancel_from)
                .optional()
                .map(Option::flatten)
        })
    }

    /// The tasks whose id matches a prefix: at most ten of each location.
    pub fn find_by_prefix(&self, prefix: &TaskIdPrefix) -> Result<Vec<TaskId>> {
        self.read(|db| {
            let mut found = Vec::new();
            for from in prefix.beginnings() {
                // Greater than every id with this prefix: the characters of an id end at `z`.
                let end = format!("{from}~");
                found.extend(query_all(db, PREFIX, (&from, &end, MAX_AMBIGUOUS), id_from)?);
            }
            Ok(found)
        })
    }

    pub fn by_thread(&self, thread_id: &str, limit: u32) -> Result<Vec<Task>> {
        self.read(|db| query_all(db, BY_THREAD, (thread_id, limit), Task::from_row))
    }

    /// Whether the agent of some task announced this thread, or a task that has not ended will resume it.
    pub fn knows_thread(&self, thread_id: &str) -> Result<bool> {
        self.read(|db| db.prepare_cached(KNOWS_THREAD)?.query_row([thread_id], |row| row.get(0)))
    }

    pub fn threads(&self, limit: u32) -> Result<Vec<String>> {
        self.read(|db| query_all(db, THREADS, [limit], |row| row.get(0)))
    }

    pub fn counts(&self) -> Result<StateCounts> {
        let count = |row: &Row<'_>| Ok((Column::read(row, "state")?, row.get("number")?));
        self.read(|db| Ok(StateCounts(query_all(db, COUNTS, (), count)?.into_iter().collect())))
    }

    /// Every starting or working task of this machine.
    pub fn active(&self) -> Result<Vec<ActiveTask>> {
        self.read(|db| query_all(db, ACTIVE, (), ActiveTask::from_row))
    }

    pub fn queue(&self, limit: u32) -> Result<Vec<Task>> {
        self.read(|db| query_all(db, QUEUE, [limit], Task::from_row))
    }

    /// Number of queued tasks before this one that await no predecessor; `None` if it is not queued.
    pub fn queue_position(&self, id: &TaskId) -> Result<Option<u64>> {
        self.read(|db| match row::load_state(db, id)? {
            Some(stored) if stored.state == State::Queued && !stored.is_remote => {
                db.prepare_cached(POSITION)?.query_row([stored.seq], |row| row.get(0)).map(Some)
            }
            _ => Ok(None),
        })
    }

    pub fn history_of(&self, id: &TaskId) -> Result<Vec<HistoryEntry>> {
        let sql = "SELECT n AS \"order\", from_state AS \"from\", to_state AS \"to\", at_ms, cause FROM transitions \
                   WHERE task = (SELECT seq FROM tasks WHERE id = ?1) ORDER BY n";
        self.read(|db| query_all(db, sql, [id.as_str()], HistoryEntry::from_row))
    }

    /// Unread ended tasks in or below a directory, with the newest ids. `location` `None` means both.
    pub fn unread(&self, under: &str, location: Option<TaskLocation>, limit: u32) -> Result<UnreadResults> {
        let DirectoryRange { dir, inside, until } = DirectoryRange::new(under);
        // The id says where a task runs, and is a column of the index.
        let ids = format!("{}*", location.map(TaskLocation::id_prefix).unwrap_or_default());
        self.read(|db| {
            let selected = (&dir, &until, &inside, &ids);
            let count = db.prepare_cached(UNREAD)?.query_row(selected, |row| row.get(0))?;
            let ids = query_all(db, UNREAD_IDS, (&dir, &until, &inside, &ids, limit), id_from)?;
            Ok(UnreadResults { count, ids })
        })
    }

    pub fn count_ended_before(&self, before_ms: i64) -> Result<u64> {
        self.read(|db| db.prepare_cached(COUNT_ENDED_BEFORE)?.query_row([before_ms], |row| row.get(0)))
    }

    /// Tasks that ended, or were imported, before a time and whose worktree does not exist; oldest first.
    pub fn ended_before(&self, before_ms: i64, limit: u32) -> Result<Vec<TaskId>> {
        self.read(|db| query_all(db, ENDED_BEFORE, (before_ms, limit), id_from))
    }

    /// The tasks that ran at the same time as this one and may write to its work trees. Call this while the
    /// task is running.
    pub fn concurrent_writers(&self, id: &TaskId) -> Result<Vec<TaskId>> {
        let read_only = Mode::ReadOnly.name();
        self.read(|db| {
            let start_from = |row: &Row<'_>| Ok((work_trees_from(row)?, row.get::<_, i64>("began")?));
            let Some((own_trees, start_order)) =
                db.query_row(START_ORDER, [id.as_str()], start_from).optional()?
            else {
                return Ok(Vec::new());
            };
            let mut others = query_all(db, RUNNING_WRITERS, (read_only, id.as_str()), writer_from)?;
            others.extend(query_all(db, ENDED_WRITERS, (read_only, id.as_str(), start_order), writer_from)?);
            let overlaps = |trees: &[WorkTree]| trees.iter().any(|tree| tree.overlaps_any(&own_trees));
            let overlapping = others.into_iter().filter(|(_, trees)| overlaps(trees));
            Ok(overlapping.map(|(other, _)| other).collect())
        })
    }
}

fn writer_from(row: &Row<'_>) -> rusqlite::Result<(TaskId, Vec<WorkTree>)> {
    Ok((id_from(row)?, work_trees_from(row)?))
}
