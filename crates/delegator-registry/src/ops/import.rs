//! Taking a past session in: a task that has ended before we heard of it.
//!
//! It goes through the states like any other, in one transaction, so nobody can ever claim it.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::State;
use rusqlite::Connection;

use super::attempt::end_task;
use super::submit::{Submitted, Taken, answer, before, end_submit, insert};
use crate::error::RegistryError;
use crate::files::task_dir::TaskFile;
use crate::registry::Registry;
use crate::row;
use crate::task::{Finish, NewTask};

/// What is known of a session that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    pub thread_id: String,
    pub started_at_ms: i64,
    pub ended_at_ms: i64,
    pub imported_at_ms: i64,
}

impl Registry {
    /// Remembers a session that is over, with what is known of it in files. The same idempotency key gives the first
    /// task again; so the files come before the row, or a crash between the two would leave a task without them for ever.
    pub fn import(
        &mut self,
        task: &NewTask,
        past: &Past,
        finish: &Finish,
        files: &[(TaskFile, &[u8])],
    ) -> Result<Submitted, RegistryError> {
        if let Some(key) = &task.idempotency
            && let Some(taken) = before(&self.db, key).map_err(|error| self.explain(error))?
        {
            return answer(taken, task);
        }
        let (asked, task, finish) = (task, &self.sink.task(task), &self.sink.finish(finish));
        let past = &Past { thread_id: self.sink.text(&past.thread_id), ..past.clone() };
        let dir = self.dir.task(&task.id);
        let entry = self.begin_submit(task, b"")?;
        let filled = files.iter().try_for_each(|(which, bytes)| dir.write(*which, bytes));
        crash_point(CrashPoint::ImportFilled);
        let made = filled.and_then(|()| self.write(|db| take_in(db, task, past, finish)));
        crash_point(CrashPoint::ImportCommitted);
        if matches!(made, Ok(Taken::New(_))) {
            self.drop_launch(&task.id);
        } else if let Ok(crate::files::lock::LockAttempt::Locked(lock)) = dir.try_lock() {
            let _ = dir.remove(lock);
        }
        end_submit(entry);
        answer(made?, asked)
    }
}

fn take_in(db: &Connection, task: &NewTask, past: &Past, finish: &Finish) -> rusqlite::Result<Taken> {
    let before = task.idempotency.as_ref().map(|key| before(db, key)).transpose()?.flatten();
    if let Some(taken) = before {
        return Ok(taken);
    }
    let seq = insert(db, task, past.started_at_ms)?.seq;
    for (from, to) in [(State::Queued, State::Starting), (State::Starting, State::Working)] {
        row::apply(db, seq, row::lawful(from, to)?, "imported", past.started_at_ms)?;
    }
    let sql = "UPDATE tasks SET thread_id = ?1, started_at_ms = ?2, imported_at_ms = ?3 WHERE seq = ?4";
    db.execute(sql, (&past.thread_id, past.started_at_ms, past.imported_at_ms, seq))?;
    let seen = row::seen(db, &task.id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    end_task(db, &seen, finish, "imported", past.ended_at_ms)?;
    // Whoever imports a session knows of it.
    db.execute("UPDATE tasks SET read_at_ms = ?1 WHERE seq = ?2", (past.ended_at_ms, seq))?;
    Ok(Taken::New(Box::new(row::task_at(db, seq)?)))
}
