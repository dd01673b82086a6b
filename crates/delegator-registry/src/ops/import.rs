//! Imports a past session as a task that has already ended.
//!
//! The task passes through all states in one transaction, so it can never be claimed.

use delegator_domain::crash::{CrashPoint, crash_point};
use rusqlite::Connection;

use super::end::record_end;
use super::submit::{Submission, SubmitResult, end_submit, find_existing, insert};
use crate::error::Result;
use crate::files::task_dir::TaskFile;
use crate::registry::Registry;
use crate::row;
use crate::task::{Finish, NewTask};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedSession {
    pub thread_id: String,
    pub started_at_ms: i64,
    pub ended_at_ms: i64,
    pub imported_at_ms: i64,
}

impl Registry {
    /// Stores a session with its files. The same idempotency key returns the first task. The files are
    /// written before the row: after a crash in between, a repeated import could not add them.
    pub fn import(
        &mut self,
        task: &NewTask,
        session: &ImportedSession,
        finish: &Finish,
        files: &[(TaskFile, &[u8])],
    ) -> Result<Submission> {
        if let Some(existing) = self.read(|db| find_existing(db, task))? {
            return existing;
        }
        let (task, finish) = (&self.sink.task(task), &self.sink.finish(finish));
        let session = &ImportedSession { thread_id: self.sink.text(&session.thread_id), ..session.clone() };
        let dir = self.dir.task(&task.id);
        let entry = self.begin_submit(task, b"")?;
        let filled = files.iter().try_for_each(|(which, bytes)| dir.write(*which, bytes));
        crash_point(CrashPoint::ImportFilled);
        let inserted = filled.and_then(|()| self.write(|db| insert_session(db, task, session, finish)));
        crash_point(CrashPoint::ImportCommitted);
        if matches!(&inserted, Ok(Ok(submission)) if !submission.replayed) {
            self.remove_inputs_best_effort(&task.id);
        } else {
            self.discard(&task.id);
        }
        end_submit(entry);
        inserted?
    }
}

fn insert_session(
    db: &Connection,
    task: &NewTask,
    session: &ImportedSession,
    finish: &Finish,
) -> rusqlite::Result<SubmitResult> {
    if let Some(existing) = find_existing(db, task)? {
        return Ok(existing);
    }
    let seq = insert(db, task, None, session.started_at_ms)?.seq;
    row::start(db, seq, "imported", session.started_at_ms)?;
    let sql = "UPDATE tasks SET thread_id = ?1, started_at_ms = ?2, imported_at_ms = ?3 WHERE seq = ?4";
    db.execute(sql, (&session.thread_id, session.started_at_ms, session.imported_at_ms, seq))?;
    let stored = row::load_state(db, &task.id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    record_end(db, &stored, finish, "imported", session.ended_at_ms)?;
    // The user who imports a session knows its result.
    db.execute("UPDATE tasks SET read_at_ms = ?1 WHERE seq = ?2", (session.ended_at_ms, seq))?;
    Ok(Ok(Submission { task: row::task_at(db, seq)?, replayed: false }))
}
