//! Ends a task in the transaction of its caller: the row, its messages and questions, the followers that it
//! leaves, and the notifications about all of them; and requests the cancellation of a task.
//!
//! A cancelled task that is queued ends at once. For a running one the request is stored, and its supervisor
//! acts on it; for a task that a provider runs, the provider does. A repeated request does not replace the
//! first. The followers of a task in a chain end at once, even if the task itself completes before its
//! supervisor acts.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{ExitStatus, State, TaskEnd, TaskId, Transition, Verification};
use rusqlite::{Connection, Row, named_params};
use serde_json::json;

use super::{messages, notifications, questions};
use crate::error::Result;
use crate::registry::{Registry, query_all};
use crate::row::{self, StoredState};
use crate::state_dir::StateDir;
use crate::task::{CancelRequest, Finish, Tokens, follows_from, id_from};

pub(crate) const AWAITING: &str = "SELECT id, follows, follows_on FROM tasks WHERE awaits = ?1 ORDER BY seq";
pub(crate) const STOP_AWAITING: &str = "UPDATE tasks SET awaits = NULL WHERE awaits = ?1";

pub(crate) fn cause(end: &TaskEnd) -> String {
    match end {
        TaskEnd::Completed => "completed".to_owned(),
        TaskEnd::Failed { kind, .. } => kind.name().to_owned(),
        TaskEnd::Cancelled { .. } => "cancelled".to_owned(),
        TaskEnd::Timeout(kind) => format!("{} limit", kind.name()),
    }
}

/// Writes the end of a task whose state was read in the same transaction, with its notifications and those of
/// the group or chain that ends with it. Returns the task and the followers that never start; the caller
/// removes their inputs.
pub(crate) fn end_task(
    db: &Connection,
    dir: &StateDir,
    stored: &StoredState,
    finish: &Finish,
    cause: &str,
    now_ms: i64,
) -> rusqlite::Result<Vec<TaskId>> {
    let ended = record_end(db, stored, finish, cause, now_ms)?;
    // After all followers are settled: only then is it known whether the chain has ended.
    notifications::enqueue_end(db, dir, stored, finish, now_ms)?;
    Ok(ended)
}

/// Writes the end of a task without notifications, and settles its messages, questions and followers. Returns
/// the task and the followers that never start.
pub(crate) fn record_end(
    db: &Connection,
    stored: &StoredState,
    finish: &Finish,
    cause: &str,
    now_ms: i64,
) -> rusqlite::Result<Vec<TaskId>> {
    let change = Transition { from: stored.state, to: finish.end.state() };
    let order = row::apply_transition(db, stored.seq, change, cause, now_ms)?;
    let (failure, limit, reason) = match &finish.end {
        TaskEnd::Failed { kind, message, retry_at_ms } => {
            (Some((kind.name(), message, *retry_at_ms)), None, None)
        }
        TaskEnd::Timeout(kind) => (None, Some(kind.name()), None),
        TaskEnd::Cancelled { reason } => (None, None, reason.as_ref()),
        TaskEnd::Completed => (None, None, None),
    };
    let survivors = (!finish.survivors.is_empty()).then(|| json!(finish.survivors).to_string());
    let sql = "UPDATE tasks SET ended_at_ms = :now, ended_order = :order, exit_code = :code, \
               exit_signal = :signal, failure_kind = :kind, failure_message = :message, retry_at = :retry_at, \
               limit_kind = :limit, end_reason = :reason, ran_ms = :ran_ms, turns = :turns, \
               cost_microdollars = :cost, summary = :summary, kill_incomplete = :kill_incomplete, \
               verification = :verification, lines_added = :added, lines_deleted = :deleted, awaits = NULL \
               WHERE seq = :seq";
    db.prepare_cached(sql)?.execute(named_params! {
        ":now": now_ms,
        ":order": order,
        ":code": finish.exit.and_then(ExitStatus::code),
        ":signal": finish.exit.and_then(ExitStatus::signal),
        ":kind": failure.map(|(kind, ..)| kind),
        ":message": failure.map(|(_, message, _)| message),
        ":retry_at": failure.and_then(|(.., retry_at_ms)| retry_at_ms),
        ":limit": limit,
        ":reason": reason,
        ":ran_ms": finish.ran_ms,
        ":turns": finish.turns,
        ":cost": finish.cost_microdollars,
        ":summary": finish.summary,
        ":kill_incomplete": survivors,
        ":verification": finish.verification.map(Verification::name),
        ":added": finish.lines.map(|lines| lines.added),
        ":deleted": finish.lines.map(|lines| lines.deleted),
        ":seq": stored.seq,
    })?;
    messages::settle_all(db, stored.seq, now_ms)?;
    questions::withdraw_all(db, stored.seq, now_ms)?;
    if let Some(Tokens { input, cached_input, output, reasoning_output }) = finish.tokens {
        let sql = "INSERT INTO usage (task, input_tokens, cached_input_tokens, output_tokens, \
                   reasoning_output_tokens) VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = (stored.seq, input, cached_input, output, reasoning_output);
        db.prepare_cached(sql)?.execute(values)?;
    }
    let mut ended = vec![stored.id.clone()];
    ended.extend(settle(db, stored.seq, &finish.end, finish.verification, now_ms)?);
    Ok(ended)
}

/// Settles the followers of a task that ends. Returns those that never start, with all that follow them.
pub(crate) fn settle(
    db: &Connection,
    predecessor: i64,
    end: &TaskEnd,
    verification: Option<Verification>,
    now_ms: i64,
) -> rusqlite::Result<Vec<TaskId>> {
    let follower = |row: &Row<'_>| Ok((id_from(row)?, follows_from(row)?));
    let followers = query_all(db, AWAITING, [predecessor], follower)?;
    if followers.is_empty() {
        return Ok(Vec::new());
    }
    db.prepare_cached(STOP_AWAITING)?.execute([predecessor])?;
    let mut ended = Vec::new();
    for (id, follows) in followers {
        let Some(reason) = follows.and_then(|follows| follows.obstacle(end, verification)) else { continue };
        let stored = row::load_state(db, &id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let finish = Finish::bare(TaskEnd::Cancelled { reason: Some(reason) });
        // The branch that a chain does not take is no news, so it sends no notification.
        ended.extend(record_end(db, &stored, &finish, "its predecessor ended differently", now_ms)?);
    }
    Ok(ended)
}

/// A cancelled task was queued and will never start. If the request is stored, wake the supervisor; a
/// repeated one returns the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelOutcome {
    Cancelled,
    Requested { state: State, request: CancelRequest, first: bool },
    AlreadyEnded { state: State },
    Unknown,
}

impl Registry {
    pub fn request_cancel(
        &mut self,
        id: &TaskId,
        reason: Option<&str>,
        now_ms: i64,
    ) -> Result<CancelOutcome> {
        let reason = self.sink.optional(reason);
        let dir = self.dir.clone();
        let (outcome, ended) = self.write_with_reserve(|db| {
            let unchanged = |outcome| Ok((outcome, Vec::new()));
            let Some(stored) = row::load_state(db, id)? else { return unchanged(CancelOutcome::Unknown) };
            if stored.state.is_terminal() {
                return unchanged(CancelOutcome::AlreadyEnded { state: stored.state });
            }
            if let Some(request) = stored.cancel {
                return unchanged(CancelOutcome::Requested { state: stored.state, request, first: false });
            }
            let sql = "UPDATE tasks SET cancel_requested_at_ms = ?1, cancel_reason = ?2, updated_at_ms = ?1 \
                       WHERE seq = ?3";
            db.execute(sql, (now_ms, &reason, stored.seq))?;
            let reason = reason.clone();
            if stored.state == State::Queued && !stored.is_remote {
                let finish = Finish::bare(TaskEnd::Cancelled { reason });
                let ended = end_task(db, &dir, &stored, &finish, "cancelled while queued", now_ms)?;
                return Ok((CancelOutcome::Cancelled, ended));
            }
            let end = TaskEnd::Cancelled { reason: reason.clone() };
            let ended = settle(db, stored.seq, &end, None, now_ms)?;
            let request = CancelRequest { at_ms: now_ms, reason };
            Ok((CancelOutcome::Requested { state: stored.state, request, first: true }, ended))
        })?;
        crash_point(CrashPoint::CancelCommitted);
        self.remove_inputs_of(&ended);
        Ok(outcome)
    }
}
