//! Converts between rows and tasks: the only code that reads a column of `tasks`, and the only code that writes
//! `state`.
//!
//! Every state change is checked against the domain's transition table and recorded in `transitions`. An unknown
//! state, mode or nonce is an error, never a default.

use delegator_domain::notification::{NotifyPlan, Subject};
use delegator_domain::task::{
    ChainOutcome, ExitStatus, FailureKind, Follows, GroupMember, LimitKind, Mode, Provider, SandboxKind,
    State, TaskEnd, TaskId, WorkTree, transition,
};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::task::{
    CancelRequest, EndRecord, Idempotency, Identity, Nonce, RemoteEnvironment, RemoteRef, RemoteTask, Task,
    TaskSummary,
};

/// A stored value that cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("column {column} has {found:?}")]
struct UnreadableColumn {
    column: &'static str,
    found: String,
}

fn unreadable(column: &'static str, found: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(UnreadableColumn { column, found }))
}

pub(crate) fn parse_column<T>(
    row: &Row<'_>,
    column: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let found: String = row.get(column)?;
    parse(&found).ok_or_else(|| unreadable(column, found))
}

pub(crate) fn json<T: serde::de::DeserializeOwned>(
    column: &'static str,
    text: String,
) -> rusqlite::Result<T> {
    serde_json::from_str(&text).map_err(|_| unreadable(column, text))
}

pub(crate) fn id_from(row: &Row<'_>) -> rusqlite::Result<TaskId> {
    parse_column(row, "id", |text| text.parse().ok())
}

pub(crate) fn state_from(row: &Row<'_>, column: &'static str) -> rusqlite::Result<State> {
    parse_column(row, column, State::from_name)
}

pub(crate) fn nonce_from(row: &Row<'_>) -> rusqlite::Result<Option<Nonce>> {
    let found: Option<String> = row.get("nonce")?;
    found.map(|text| Nonce::from_text(&text).ok_or_else(|| unreadable("nonce", text))).transpose()
}

pub(crate) fn mode_from(row: &Row<'_>) -> rusqlite::Result<Mode> {
    parse_column(row, "mode", Mode::from_name)
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

/// The columns of a [`TaskSummary`], in the order in which [`summary_from`] reads them.
pub(crate) const SUMMARY_COLUMNS: &str = "seq, id, state, created_at_ms, started_at_ms, working_dir, containment, title, labels, environment, sandbox, follows, follows_on, \
     group_id, attempt";

pub(crate) fn summary_from(row: &Row<'_>) -> rusqlite::Result<TaskSummary> {
    Ok(TaskSummary {
        seq: row.get("seq")?,
        id: id_from(row)?,
        state: state_from(row, "state")?,
        created_at_ms: row.get("created_at_ms")?,
        started_at_ms: row.get("started_at_ms")?,
        working_dir: row.get("working_dir")?,
        containment: row.get("containment")?,
        title: row.get("title")?,
        labels: json("labels", row.get("labels")?)?,
        environment: row.get("environment")?,
        sandbox: sandbox_from(row)?,
        group: group_from(row)?,
        follows: follows_from(row)?,
    })
}

/// Reads a complete task from `SELECT *`.
pub(crate) fn task_from(row: &Row<'_>) -> rusqlite::Result<Task> {
    let state = state_from(row, "state")?;
    let key: Option<String> = row.get("idempotency_key")?;
    let request_hash: Option<String> = row.get("request_hash")?;
    Ok(Task {
        seq: row.get("seq")?,
        id: id_from(row)?,
        state,
        created_at_ms: row.get("created_at_ms")?,
        claimed_at_ms: row.get("claimed_at_ms")?,
        started_at_ms: row.get("started_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
        working_dir: row.get("working_dir")?,
        work_trees: work_trees_from(row)?,
        allow_parallel_writes: row.get("allow_parallel_writes")?,
        mode: mode_from(row)?,
        sandbox: sandbox_from(row)?,
        agent: row.get("agent")?,
        model: row.get("model")?,
        title: row.get("title")?,
        labels: json("labels", row.get("labels")?)?,
        input: json("input", row.get("input")?)?,
        resumed_thread: row.get("resumed_thread")?,
        thread_id: row.get("thread_id")?,
        idempotency: key.zip(request_hash).map(|(key, hash)| Idempotency::new(key, hash)),
        starts: row.get("starts")?,
        nonce: nonce_from(row)?,
        supervisor: identity_from(row)?,
        containment: row.get("containment")?,
        cancel: cancel_from(row)?,
        ended: if state.is_terminal() { Some(ended_from(row, state)?) } else { None },
        imported_at_ms: row.get("imported_at_ms")?,
        remote: remote_from(row)?,
        worktree: worktree_from(row)?,
        follows: follows_from(row)?,
        awaits_predecessor: row.get::<_, Option<i64>>("awaits")?.is_some(),
        group: group_from(row)?,
    })
}

pub(crate) fn follows_from(row: &Row<'_>) -> rusqlite::Result<Option<Follows>> {
    let Some(task) = row.get::<_, Option<String>>("follows")? else { return Ok(None) };
    let task = task.parse().map_err(|_| unreadable("follows", task))?;
    Ok(Some(Follows { task, on: parse_column(row, "follows_on", ChainOutcome::from_name)? }))
}

fn group_from(row: &Row<'_>) -> rusqlite::Result<Option<GroupMember>> {
    let Some(group) = row.get::<_, Option<String>>("group_id")? else { return Ok(None) };
    let group = group.parse().map_err(|_| unreadable("group_id", group))?;
    Ok(Some(GroupMember { group, attempt: row.get("attempt")? }))
}

fn remote_from(row: &Row<'_>) -> rusqlite::Result<Option<RemoteTask>> {
    let Some(provider) = row.get::<_, Option<String>>("provider")? else { return Ok(None) };
    let provider = Provider::from_name(&provider).ok_or_else(|| unreadable("provider", provider))?;
    let url = row.get("remote_url")?;
    let accepted = row.get::<_, Option<String>>("remote_id")?.map(|id| RemoteRef { id, url });
    Ok(Some(RemoteTask {
        environment: RemoteEnvironment { provider, id: row.get("environment")? },
        accepted,
        checked_at_ms: row.get("checked_at_ms")?,
        checks: row.get("checks")?,
    }))
}

fn worktree_from(row: &Row<'_>) -> rusqlite::Result<Option<TaskId>> {
    let owner: Option<String> = row.get("worktree")?;
    owner.map(|id| id.parse().map_err(|_| unreadable("worktree", id))).transpose()
}

fn sandbox_from(row: &Row<'_>) -> rusqlite::Result<Option<SandboxKind>> {
    let name: Option<String> = row.get("sandbox")?;
    name.map(|name| SandboxKind::from_name(&name).ok_or_else(|| unreadable("sandbox", name))).transpose()
}

fn notify_from(row: &Row<'_>) -> rusqlite::Result<Option<NotifyPlan>> {
    let text: Option<String> = row.get("notify")?;
    text.map(|text| NotifyPlan::from_text(&text).ok_or_else(|| unreadable("notify", text))).transpose()
}

/// The work trees a task may write in.
pub(crate) fn work_trees_from(row: &Row<'_>) -> rusqlite::Result<Vec<WorkTree>> {
    let first: Option<String> = row.get("work_tree")?;
    let more: Option<String> = row.get("more_work_trees")?;
    let more: Vec<String> = more.map(|text| json("more_work_trees", text)).transpose()?.unwrap_or_default();
    Ok(first.iter().chain(&more).map(|text| WorkTree::from_text(text)).collect())
}

fn ended_from(row: &Row<'_>, state: State) -> rusqlite::Result<EndRecord> {
    let code: Option<i32> = row.get("exit_code")?;
    let signal: Option<i32> = row.get("exit_signal")?;
    let survivors: Option<String> = row.get("kill_incomplete")?;
    Ok(EndRecord {
        at_ms: row.get("ended_at_ms")?,
        order: row.get("ended_order")?,
        end: end_from(row, state)?,
        exit: code.map(ExitStatus::Code).or(signal.map(ExitStatus::Signal)),
        ran_ms: row.get("ran_ms")?,
        summary: row.get("summary")?,
        survivors: survivors.map(|text| json("kill_incomplete", text)).transpose()?.unwrap_or_default(),
        read_at_ms: row.get("read_at_ms")?,
    })
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
        State::Timeout => TaskEnd::Timeout(parse_column(row, "limit_kind", LimitKind::from_name)?),
        _ => TaskEnd::Completed,
    })
}

/// The id of a group is none of a task, so the kind is not stored.
fn submission_from(row: &Row<'_>) -> rusqlite::Result<Option<Subject>> {
    let Some(id) = row.get::<_, Option<String>>("submission")? else { return Ok(None) };
    let subject = id.parse().map(Subject::Group).or_else(|_| id.parse().map(Subject::Chain));
    subject.map(Some).map_err(|_| unreadable("submission", id))
}

/// The state of a task, read inside a transaction.
#[derive(Debug, Clone)]
pub(crate) struct StoredState {
    pub(crate) seq: i64,
    pub(crate) id: TaskId,
    pub(crate) state: State,
    pub(crate) nonce: Option<Nonce>,
    pub(crate) starts: u32,
    pub(crate) cancel: Option<CancelRequest>,
    /// A provider runs it elsewhere.
    pub(crate) is_remote: bool,
    pub(crate) notify: Option<NotifyPlan>,
    /// The group or chain with which it was submitted.
    pub(crate) submission: Option<Subject>,
}

pub(crate) fn load_state(db: &Connection, id: &TaskId) -> rusqlite::Result<Option<StoredState>> {
    let sql = "SELECT seq, state, nonce, starts, cancel_requested_at_ms, cancel_reason, provider IS NOT NULL AS is_remote, notify, submission \
         FROM tasks WHERE id = ?1";
    db.prepare_cached(sql)?
        .query_row([id.as_str()], |row| {
            Ok(StoredState {
                seq: row.get("seq")?,
                id: id.clone(),
                state: state_from(row, "state")?,
                nonce: nonce_from(row)?,
                starts: row.get("starts")?,
                cancel: cancel_from(row)?,
                is_remote: row.get("is_remote")?,
                notify: notify_from(row)?,
                submission: submission_from(row)?,
            })
        })
        .optional()
}

pub(crate) fn task_at(db: &Connection, seq: i64) -> rusqlite::Result<Task> {
    db.prepare_cached("SELECT * FROM tasks WHERE seq = ?1")?.query_row([seq], task_from)
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
