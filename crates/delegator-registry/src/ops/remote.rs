//! Tasks that a provider runs elsewhere.
//!
//! Their rows record what the provider last reported. They are never claimed, rescued or counted against the
//! slots of this machine. Two processes may record the same report; the first one changes the row, the second
//! gets [`Lost`].

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{State, TaskId};
use rusqlite::Connection;

use super::end::{cause, end_task};
use crate::compare_and_set::{Cas, Lost};
use crate::error::Result;
use crate::registry::{Registry, query_all};
use crate::row::{self, StoredState};
use crate::state_dir::StateDir;
use crate::task::{Finish, RemoteRef, Task};

/// What a provider reports about a task. Times are by the provider's clock, if it reports them.
#[derive(Debug, Clone, PartialEq)]
pub enum RemoteReport {
    Queued,
    Working { started_at_ms: Option<i64> },
    Ended { finish: Finish, started_at_ms: Option<i64>, at_ms: Option<i64> },
}

pub(crate) const UNFINISHED_REMOTE: &str = "SELECT * FROM tasks WHERE provider IS NOT NULL AND state IN ('queued', 'starting', 'working') ORDER BY seq";

impl Registry {
    pub fn unfinished_remote(&self) -> Result<Vec<Task>> {
        self.read(|db| query_all(db, UNFINISHED_REMOTE, (), Task::from_row))
    }

    pub fn accept_remote(&mut self, id: &TaskId, accepted: &RemoteRef, now_ms: i64) -> Result<Cas<()>> {
        let (remote_id, url) = (self.sink.text(&accepted.id), self.sink.optional(accepted.url.as_deref()));
        let outcome = self.write(|db| {
            with_unfinished(db, id, |stored| {
                let sql =
                    "UPDATE tasks SET remote_id = ?1, remote_url = ?2, updated_at_ms = ?3 WHERE seq = ?4";
                db.execute(sql, (&remote_id, &url, now_ms, stored.seq)).map(drop)
            })
        })?;
        crash_point(CrashPoint::RemoteAccepted);
        // Not the settings of notifications: the task has not ended.
        let _ = self.dir.task(id).remove_inputs();
        Ok(outcome)
    }

    /// Deletes a task that its provider refused, with its directory. `remote_id` is the id with which it was
    /// submitted, if the provider does not choose it; a task with another one was accepted and stays.
    pub fn withdraw_remote(&mut self, id: &TaskId, remote_id: Option<&str>) -> Result<()> {
        let is_deleted = self.write(|db| {
            let sql = "DELETE FROM tasks WHERE id = ?1 AND provider IS NOT NULL AND remote_id IS ?2 \
                       AND state = 'queued'";
            Ok(db.execute(sql, (id.as_str(), remote_id))? == 1)
        })?;
        if is_deleted {
            self.discard(id);
        }
        Ok(())
    }

    pub fn record_remote(&mut self, id: &TaskId, report: &RemoteReport, now_ms: i64) -> Result<Cas<()>> {
        let mut report = report.clone();
        if let RemoteReport::Ended { finish, .. } = &mut report {
            *finish = self.sink.finish(finish);
        }
        let dir = self.dir.clone();
        let outcome = self.write_with_reserve(|db| {
            with_unfinished(db, id, |stored| {
                let sql = "UPDATE tasks SET checked_at_ms = ?1, checks = checks + 1 WHERE seq = ?2";
                db.execute(sql, (now_ms, stored.seq))?;
                match &report {
                    RemoteReport::Queued => Ok(()),
                    RemoteReport::Working { started_at_ms } => {
                        begin(db, stored, *started_at_ms, now_ms).map(drop)
                    }
                    RemoteReport::Ended { finish, started_at_ms, at_ms } => {
                        let at_ms = possible_time(db, stored, at_ms.unwrap_or(now_ms), now_ms)?;
                        end(db, &dir, stored, finish, *started_at_ms, at_ms)
                    }
                }
            })
        })?;
        crash_point(CrashPoint::RemoteReported);
        if matches!(report, RemoteReport::Ended { .. }) {
            self.remove_inputs_best_effort(id);
        }
        Ok(outcome)
    }
}

fn with_unfinished(
    db: &Connection,
    id: &TaskId,
    change: impl FnOnce(&StoredState) -> rusqlite::Result<()>,
) -> rusqlite::Result<Cas<()>> {
    match row::load_state(db, id)? {
        Some(stored) if stored.is_remote && !stored.state.is_terminal() => change(&stored).map(Cas::Applied),
        stored => Ok(Cas::Lost(Lost { actual: stored.map(|stored| stored.state) })),
    }
}

/// The nearest time to a reported one, between the submission of the task and now: the clocks may differ.
fn possible_time(
    db: &Connection,
    stored: &StoredState,
    reported_ms: i64,
    now_ms: i64,
) -> rusqlite::Result<i64> {
    let sql = "SELECT created_at_ms FROM tasks WHERE seq = ?1";
    let created_at_ms: i64 = db.query_row(sql, [stored.seq], |row| row.get(0))?;
    Ok(reported_ms.min(now_ms).max(created_at_ms))
}

/// A task that works already is unchanged. If its start is unknown, the time of its submission counts.
fn begin(
    db: &Connection,
    stored: &StoredState,
    started_at_ms: Option<i64>,
    now_ms: i64,
) -> rusqlite::Result<State> {
    if stored.state != State::Queued {
        return Ok(stored.state);
    }
    row::start(db, stored.seq, "the provider started it", now_ms)?;
    let started_at_ms = possible_time(db, stored, started_at_ms.unwrap_or(i64::MIN), now_ms)?;
    let sql = "UPDATE tasks SET claimed_at_ms = ?1, started_at_ms = ?2 WHERE seq = ?3";
    db.execute(sql, (now_ms, started_at_ms, stored.seq))?;
    Ok(State::Working)
}

fn end(
    db: &Connection,
    dir: &StateDir,
    stored: &StoredState,
    finish: &Finish,
    started_at_ms: Option<i64>,
    now_ms: i64,
) -> rusqlite::Result<()> {
    // A task that ended between two queries was working at some time. One that was cancelled may never have
    // been.
    let state = match (finish.end.state(), started_at_ms) {
        (State::Cancelled, None) => stored.state,
        _ => begin(db, stored, started_at_ms, now_ms)?,
    };
    let stored = &StoredState { state, ..stored.clone() };
    // No task follows one that a provider runs.
    end_task(db, dir, stored, finish, &cause(&finish.end), now_ms).map(drop)
}
