//! Requests the cancellation of a task.
//!
//! A queued task ends at once. For a running one the request is stored, and its supervisor acts on it; for a
//! task that a provider runs, the provider does. A repeated request does not replace the first. The followers
//! of a task in a chain end at once, even if the task itself completes before its supervisor acts.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{State, TaskEnd, TaskId};

use super::end::{end_task, settle};
use crate::error::Result;
use crate::registry::Registry;
use crate::row;
use crate::task::{CancelRequest, Finish};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It was queued and will never start.
    Cancelled,
    /// The request is stored; wake the supervisor. A repeated request returns the first one.
    Requested {
        state: State,
        request: CancelRequest,
        first: bool,
    },
    /// It had already ended; nothing was changed.
    AlreadyEnded {
        state: State,
    },
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
                let ended = end_task(db, &stored, &finish, "cancelled while queued", now_ms)?;
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
