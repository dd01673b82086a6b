//! The operations on one attempt at a task: begin, give back, finish.
//!
//! The nonce identifies the attempt, as a fencing token: a late supervisor of an earlier attempt gets
//! [`Lost`]. Only the current attempt may change the task.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{FailureKind, State, TaskEnd, TaskId, Transition, transition};
use rusqlite::Connection;

use super::agent_pauses;
use super::claim::{self, Claim, Promotion};
use super::end::{cause, end_task};
use crate::compare_and_set::{Attempt, Cas, Lost, Nonce};
use crate::error::Result;
use crate::registry::Registry;
use crate::row::{self, StoredState};
use crate::task::{CancelRequest, Finish, Identity};

/// A task fails after this many starts without a running supervisor.
const MAX_STARTS: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeginOutcome {
    /// The attempt is current; the supervisor may start the agent.
    Working,
    /// The supervisor must not start the agent, but record the end (`Attempt::starting`,
    /// `TaskEnd::Cancelled`).
    CancelRequested(CancelRequest),
    Lost(Lost),
}

/// Queued again in its old position, cancelled as requested before, or failed after too many starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GiveBackOutcome {
    Queued { starts: u32 },
    Cancelled,
    Failed { starts: u32 },
    Lost(Lost),
}

impl Registry {
    /// Moves `starting(nonce)` to `working`, unless a cancel was requested. The caller holds the task's lock
    /// and may start the agent only on [`BeginOutcome::Working`].
    pub fn begin_work(
        &mut self,
        id: &TaskId,
        nonce: &Nonce,
        supervisor: &Identity,
        containment: Option<&str>,
        now_ms: i64,
    ) -> Result<BeginOutcome> {
        let expected = Attempt::starting(nonce.clone());
        self.write(|db| {
            let stored = match load_attempt(db, id, &expected)? {
                Ok(stored) => stored,
                Err(lost) => return Ok(BeginOutcome::Lost(lost)),
            };
            if let Some(cancel) = stored.cancel {
                return Ok(BeginOutcome::CancelRequested(cancel));
            }
            let change = Transition { from: State::Starting, to: State::Working };
            row::apply_transition(db, stored.seq, change, "supervisor began", now_ms)?;
            let Identity { boot_id, pid, start_time, pid_ns } = supervisor;
            let sql = "UPDATE tasks SET started_at_ms = ?1, boot_id = ?2, pid = ?3, start_time = ?4, pid_ns = ?5, \
                       containment = ?6 WHERE seq = ?7";
            let values = (now_ms, boot_id, pid, start_time, pid_ns, containment, stored.seq);
            db.prepare_cached(sql)?.execute(values)?;
            Ok(BeginOutcome::Working)
        })
        .inspect(|_| crash_point(CrashPoint::WorkBegun))
    }

    /// Returns an attempt whose supervisor provably never ran: the caller holds the task's lock, or never
    /// spawned one.
    pub fn give_back(&mut self, id: &TaskId, nonce: &Nonce, now_ms: i64) -> Result<GiveBackOutcome> {
        let expected = Attempt::starting(nonce.clone());
        let dir = self.dir.clone();
        let (outcome, ended) = self.write_with_reserve(|db| {
            let stored = match load_attempt(db, id, &expected)? {
                Ok(stored) => stored,
                Err(lost) => return Ok((GiveBackOutcome::Lost(lost), Vec::new())),
            };
            if let Some(cancel) = &stored.cancel {
                let end = TaskEnd::Cancelled { reason: cancel.reason.clone() };
                let ended =
                    end_task(db, &dir, &stored, &Finish::bare(end), "cancelled before the start", now_ms)?;
                return Ok((GiveBackOutcome::Cancelled, ended));
            }
            if stored.starts >= MAX_STARTS {
                let message = format!("{} supervisors were started and none of them ran", stored.starts);
                let kind = FailureKind::SupervisorStartFailed;
                let end = TaskEnd::Failed { kind, message, retry_at_ms: None };
                let ended = end_task(db, &dir, &stored, &Finish::bare(end), kind.name(), now_ms)?;
                return Ok((GiveBackOutcome::Failed { starts: stored.starts }, ended));
            }
            let change = Transition { from: State::Starting, to: State::Queued };
            row::apply_transition(db, stored.seq, change, "supervisor never ran", now_ms)?;
            db.prepare_cached("UPDATE tasks SET nonce = NULL, claimed_at_ms = NULL WHERE seq = ?1")?
                .execute([stored.seq])?;
            Ok((GiveBackOutcome::Queued { starts: stored.starts }, Vec::new()))
        })?;
        crash_point(CrashPoint::AttemptGivenBack);
        self.remove_inputs_of(&ended);
        Ok(outcome)
    }

    /// Records the end of an attempt and claims its successors, in one transaction; the caller starts them.
    /// Succeeds on a full disk as long as reserved space is left. An existing terminal state is not changed.
    pub fn finish(
        &mut self,
        id: &TaskId,
        attempt: &Attempt,
        finish: &Finish,
        promotion: &Promotion<'_>,
        now_ms: i64,
    ) -> Result<Cas<Vec<Claim>>> {
        transition(attempt.state, finish.end.state())?;
        let finish = &self.sink.finish(finish);
        let dir = self.dir.clone();
        let (outcome, ended) = self.write_with_reserve(|db| {
            let stored = match load_attempt(db, id, attempt)? {
                Ok(stored) => stored,
                Err(lost) => return Ok((Cas::Lost(lost), Vec::new())),
            };
            let ended = end_task(db, &dir, &stored, finish, &cause(&finish.end), now_ms)?;
            agent_pauses::pause_after(db, stored.seq, &finish.end, now_ms)?;
            let claims = claim::claim(db, promotion, claim::MAX_CLAIMS_PER_CALL, now_ms)?;
            Ok((Cas::Applied(claims), ended))
        })?;
        crash_point(CrashPoint::EndCommitted);
        if matches!(outcome, Cas::Applied(_)) {
            self.remove_inputs_of(&ended);
            crash_point(CrashPoint::LaunchDropped);
        }
        Ok(outcome)
    }

    /// Changes a task in one transaction if it is working and this is its current attempt.
    pub(crate) fn write_working<T>(
        &mut self,
        id: &TaskId,
        nonce: &Nonce,
        change: impl FnOnce(&Connection, &StoredState) -> rusqlite::Result<Cas<T>>,
    ) -> Result<Cas<T>> {
        let attempt = Attempt::working(nonce.clone());
        self.write(|db| match load_attempt(db, id, &attempt)? {
            Ok(stored) => change(db, &stored),
            Err(lost) => Ok(Cas::Lost(lost)),
        })
    }

    /// Removes the inputs after the end was recorded. If this fails, `leftovers` finds them.
    pub(crate) fn remove_inputs_best_effort(&self, id: &TaskId) {
        let _ = self.dir.task(id).remove_inputs();
        self.remove_notify_settings_best_effort(id);
    }

    pub(crate) fn remove_inputs_of(&self, ids: &[TaskId]) {
        ids.iter().for_each(|id| self.remove_inputs_best_effort(id));
    }
}

/// Loads the task if its current attempt is the expected one.
pub(crate) fn load_attempt(
    db: &Connection,
    id: &TaskId,
    attempt: &Attempt,
) -> rusqlite::Result<Result<StoredState, Lost>> {
    let stored = row::load_state(db, id)?;
    let is_expected =
        |stored: &StoredState| (Some(&attempt.nonce), attempt.state) == (stored.nonce.as_ref(), stored.state);
    Ok(match stored {
        Some(stored) if is_expected(&stored) => Ok(stored),
        stored => Err(Lost { actual: stored.map(|stored| stored.state) }),
    })
}
