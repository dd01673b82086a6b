//! The state of a stored task, and the only code that writes `state`.
//!
//! Every state change is checked against the domain's transition table and recorded in `transitions`.

use delegator_domain::notification::{NotifyPlan, Subject};
use delegator_domain::task::{State, TaskId, Transition, transition};
use rusqlite::{Connection, OptionalExtension, Row, ToSql};

use crate::columns::{record, unreadable};
use crate::compare_and_set::Nonce;
use crate::task::{CancelRequest, Task, cancel_from, submission_from};

record! {
    #[derive(Debug, Clone)]
    pub(crate) struct StoredState {
        pub(crate) seq: i64,
        pub(crate) id: TaskId,
        pub(crate) state: State,
        pub(crate) nonce: Option<Nonce>,
        pub(crate) starts: u32,
        pub(crate) cancel: Option<CancelRequest> = cancel_from,
        /// A provider runs it elsewhere.
        pub(crate) is_remote: bool,
        pub(crate) notify: Option<NotifyPlan> = notify_from,
        /// The group or chain with which it was submitted.
        pub(crate) submission: Option<Subject> = submission_from,
    }
}

fn notify_from(row: &Row<'_>) -> rusqlite::Result<Option<NotifyPlan>> {
    let Some(text) = row.get::<_, Option<String>>("notify")? else { return Ok(None) };
    let later: Option<String> = row.get("notify_later")?;
    let plan = NotifyPlan::from_text(&text, later.as_deref().unwrap_or_default());
    plan.map(Some).ok_or_else(|| unreadable("notify", text))
}

pub(crate) fn load_state(db: &Connection, id: &TaskId) -> rusqlite::Result<Option<StoredState>> {
    let sql = "SELECT seq, id, state, nonce, starts, cancel_requested_at_ms, cancel_reason, provider IS NOT NULL AS is_remote, notify, notify_later, submission \
         FROM tasks WHERE id = ?1";
    db.prepare_cached(sql)?.query_row([id.as_str()], StoredState::from_row).optional()
}

pub(crate) fn task_at(db: &Connection, seq: i64) -> rusqlite::Result<Task> {
    db.prepare_cached("SELECT * FROM tasks WHERE seq = ?1")?.query_row([seq], Task::from_row)
}

/// Inserts a row: the name of each parameter is that of its column. Returns the number of the row.
pub(crate) fn insert(db: &Connection, table: &str, values: &[(&str, &dyn ToSql)]) -> rusqlite::Result<i64> {
    let columns: Vec<&str> = values.iter().map(|(name, _)| name.trim_start_matches(':')).collect();
    let sql = format!("INSERT INTO {table} ({}) VALUES (:{})", columns.join(", "), columns.join(", :"));
    db.prepare_cached(&sql)?.execute(values)?;
    Ok(db.last_insert_rowid())
}

/// Changes the state. Every change of `state` goes through this function. Returns the number of the recorded
/// transition. The caller has read `from` under the write lock, so a failure is a bug and not a race.
pub(crate) fn apply_transition(
    db: &Connection,
    seq: i64,
    Transition { from, to }: Transition,
    cause: &str,
    now_ms: i64,
) -> rusqlite::Result<i64> {
    transition(from, to).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let sql = "UPDATE tasks SET state = ?1, updated_at_ms = ?2 WHERE seq = ?3 AND state = ?4";
    let changed = db.prepare_cached(sql)?.execute((to.name(), now_ms, seq, from.name()))?;
    if changed != 1 {
        return Err(rusqlite::Error::StatementChangedRows(changed));
    }
    insert_transition(db, seq, Some(from), to, cause, now_ms)
}

pub(crate) fn start(db: &Connection, seq: i64, cause: &str, now_ms: i64) -> rusqlite::Result<()> {
    for (from, to) in [(State::Queued, State::Starting), (State::Starting, State::Working)] {
        apply_transition(db, seq, Transition { from, to }, cause, now_ms)?;
    }
    Ok(())
}

pub(crate) fn insert_transition(
    db: &Connection,
    seq: i64,
    from: Option<State>,
    to: State,
    cause: &str,
    now_ms: i64,
) -> rusqlite::Result<i64> {
    let sql =
        "INSERT INTO transitions (task, from_state, to_state, at_ms, cause) VALUES (?1, ?2, ?3, ?4, ?5)";
    db.prepare_cached(sql)?.execute((seq, from.map(State::name), to.name(), now_ms, cause))?;
    Ok(db.last_insert_rowid())
}
