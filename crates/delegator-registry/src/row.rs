//! Reads the values of a task that take more than their own column, and is the only code that writes `state`.
//!
//! Every state change is checked against the domain's transition table and recorded in `transitions`. An unknown
//! state, mode or nonce is an error, never a default.

use delegator_domain::notification::{NotifyPlan, Subject};
use delegator_domain::task::{
    ExitStatus, FailureKind, Follows, GroupMember, State, TaskEnd, TaskId, WorkTree, transition,
};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::columns::{Column, record, unreadable};
use crate::task::{
    CancelRequest, EndRecord, Idempotency, Identity, Nonce, RemoteEnvironment, RemoteRef, RemoteTask, Task,
};

pub(crate) fn id_from(row: &Row<'_>) -> rusqlite::Result<TaskId> {
    Column::read(row, "id")
}

pub(crate) fn identity_from(row: &Row<'_>) -> rusqlite::Result<Option<Identity>> {
    let Some(boot_id) = row.get("boot_id")? else { return Ok(None) };
    let (pid, start_time, pid_ns) = (row.get("pid")?, row.get("start_time")?, row.get("pid_ns")?);
    Ok(Some(Identity { boot_id, pid, start_time, pid_ns }))
}

pub(crate) fn cancel_from(row: &Row<'_>) -> rusqlite::Result<Option<CancelRequest>> {
    let at_ms: Option<i64> = row.get("cancel_requested_at_ms")?;
    let reason = row.get("cancel_reason")?;
    Ok(at_ms.map(|at_ms| CancelRequest { at_ms, reason }))
}

/// The columns from which a [`crate::TaskSummary`] is read.
pub(crate) const SUMMARY_COLUMNS: &str = "seq, id, state, created_at_ms, started_at_ms, working_dir, containment, title, labels, environment, sandbox, follows, follows_on, \
     group_id, attempt";

pub(crate) fn idempotency_from(row: &Row<'_>) -> rusqlite::Result<Option<Idempotency>> {
    let key: Option<String> = row.get("idempotency_key")?;
    let request_hash: Option<String> = row.get("request_hash")?;
    Ok(key.zip(request_hash).map(|(key, hash)| Idempotency::new(key, hash)))
}

pub(crate) fn awaits_from(row: &Row<'_>) -> rusqlite::Result<bool> {
    Ok(row.get::<_, Option<i64>>("awaits")?.is_some())
}

pub(crate) fn follows_from(row: &Row<'_>) -> rusqlite::Result<Option<Follows>> {
    let Some(task) = Column::read(row, "follows")? else { return Ok(None) };
    Ok(Some(Follows { task, on: Column::read(row, "follows_on")? }))
}

pub(crate) fn group_from(row: &Row<'_>) -> rusqlite::Result<Option<GroupMember>> {
    let Some(group) = Column::read(row, "group_id")? else { return Ok(None) };
    Ok(Some(GroupMember { group, attempt: row.get("attempt")? }))
}

pub(crate) fn remote_from(row: &Row<'_>) -> rusqlite::Result<Option<RemoteTask>> {
    let Some(provider) = Column::read(row, "provider")? else { return Ok(None) };
    let url = row.get("remote_url")?;
    let accepted = row.get::<_, Option<String>>("remote_id")?.map(|id| RemoteRef { id, url });
    Ok(Some(RemoteTask {
        environment: RemoteEnvironment { provider, id: row.get("environment")? },
        accepted,
        checked_at_ms: row.get("checked_at_ms")?,
        checks: row.get("checks")?,
    }))
}

/// The work trees a task may write in.
pub(crate) fn work_trees_from(row: &Row<'_>) -> rusqlite::Result<Vec<WorkTree>> {
    let first: Option<String> = row.get("work_tree")?;
    let more: Vec<String> = Option::read(row, "more_work_trees")?.unwrap_or_default();
    Ok(first.iter().chain(&more).map(|text| WorkTree::from_text(text)).collect())
}

pub(crate) fn ended_from(row: &Row<'_>) -> rusqlite::Result<Option<EndRecord>> {
    let state = State::read(row, "state")?;
    if !state.is_terminal() {
        return Ok(None);
    }
    let code: Option<i32> = row.get("exit_code")?;
    let signal: Option<i32> = row.get("exit_signal")?;
    Ok(Some(EndRecord {
        at_ms: row.get("ended_at_ms")?,
        order: row.get("ended_order")?,
        end: end_from(row, state)?,
        exit: code.map(ExitStatus::Code).or(signal.map(ExitStatus::Signal)),
        ran_ms: row.get("ran_ms")?,
        summary: row.get("summary")?,
        survivors: Option::read(row, "kill_incomplete")?.unwrap_or_default(),
        read_at_ms: row.get("read_at_ms")?,
    }))
}

fn end_from(row: &Row<'_>, state: State) -> rusqlite::Result<TaskEnd> {
    Ok(match state {
        State::Failed => TaskEnd::Failed {
            // A kind that only a newer program knows is still a failure with its message.
            kind: FailureKind::from_name(&row.get::<_, String>("failure_kind")?)
                .unwrap_or(FailureKind::Internal),
            message: row.get("failure_message")?,
            // The column has the type TEXT. Older programs stored the agent's words in it.
            retry_at_ms: row.get::<_, Option<String>>("retry_at")?.and_then(|text| text.parse().ok()),
        },
        State::Cancelled => TaskEnd::Cancelled { reason: row.get("end_reason")? },
        State::Timeout => TaskEnd::Timeout(Column::read(row, "limit_kind")?),
        _ => TaskEnd::Completed,
    })
}

/// The id of a group is none of a task, so the kind is not stored.
fn submission_from(row: &Row<'_>) -> rusqlite::Result<Option<Subject>> {
    let Some(id) = row.get::<_, Option<String>>("submission")? else { return Ok(None) };
    let subject = id.parse().map(Subject::Group).or_else(|_| id.parse().map(Subject::Chain));
    subject.map(Some).map_err(|_| unreadable("submission", id))
}

record! {
    /// The state of a task, read inside a transaction.
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
        pub(crate) notify: Option<NotifyPlan>,
        /// The group or chain with which it was submitted.
        pub(crate) submission: Option<Subject> = submission_from,
    }
}

pub(crate) fn load_state(db: &Connection, id: &TaskId) -> rusqlite::Result<Option<StoredState>> {
    let sql = "SELECT seq, id, state, nonce, starts, cancel_requested_at_ms, cancel_reason, provider IS NOT NULL AS is_remote, notify, submission \
         FROM tasks WHERE id = ?1";
    db.prepare_cached(sql)?.query_row([id.as_str()], StoredState::from_row).optional()
}

pub(crate) fn task_at(db: &Connection, seq: i64) -> rusqlite::Result<Task> {
    db.prepare_cached("SELECT * FROM tasks WHERE seq = ?1")?.query_row([seq], Task::from_row)
}

/// Changes the state. Every change of `state` goes through this function. Returns the number of the recorded
/// transition. The caller has read `from` under the write lock, so a failure is a bug and not a race.
pub(crate) fn apply_transition(
    db: &Connection,
    seq: i64,
    (from, to): (State, State),
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

/// Records a transition; `from` is `None` for the first.
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
