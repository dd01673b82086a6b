//! What crashes leave behind in `tasks/`, and its removal.

use std::fs;
use std::io;
use std::time::SystemTime;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{State, TaskId};
use rusqlite::Connection;

use crate::error::RegistryError;
use crate::files::lock::LockAttempt;
use crate::files::task_dir::TaskFile;
use crate::registry::Registry;
use crate::row;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeftoverKind {
    /// A submit or an import ended between its files and the row; nobody was told of a task.
    NeverSubmitted,
    /// The row is gone on purpose.
    Forgotten,
    /// The task has ended, but what started it (secrets included) is still there.
    LaunchOfEnded,
    /// Results without a row: the registry was set aside or lost. Reported, never removed.
    Unclaimed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub id: TaskId,
    pub kind: LeftoverKind,
}

impl Registry {
    /// Finds what crashes left behind. A directory without a row counts only if it is older than `before_ms`: a younger
    /// one may belong to a submit under way. Reads every directory; for cleaning, not for every call.
    pub fn orphans(&self, before_ms: i64) -> Result<Vec<Leftover>, RegistryError> {
        let tasks = self.dir.tasks();
        let mut found = Vec::new();
        let entries = match fs::read_dir(&tasks) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(RegistryError::file(&tasks, "read")(error)),
        };
        for entry in entries {
            let entry = entry.map_err(RegistryError::file(&tasks, "read"))?;
            // What is not named like a task is not ours to judge.
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<TaskId>().ok()) else {
                continue;
            };
            // Before the row is looked for: a submit that commits in between is then seen by its row.
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if let Some(kind) = self.judge(&id, modified.is_ok_and(|at| is_before(at, before_ms)))? {
                found.push(Leftover { id, kind });
            }
        }
        found.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(found)
    }

    fn judge(&self, id: &TaskId, is_old: bool) -> Result<Option<LeftoverKind>, RegistryError> {
        let dir = self.dir.task(id);
        let (state, forgotten) = self.read(|db| Ok((state_of(db, id)?, is_forgotten(db, id)?)))?;
        Ok(match state {
            Some(state) if state.is_terminal() && dir.has_inputs() => Some(LeftoverKind::LaunchOfEnded),
            Some(_) => None,
            None if forgotten => Some(LeftoverKind::Forgotten),
            None if !is_old => None,
            None => {
                let has_results = [TaskFile::Events, TaskFile::Stderr, TaskFile::Snapshot, TaskFile::Report]
                    .into_iter()
                    .any(|file| dir.file(file).exists());
                // An import writes its results first, and has nothing to start.
                let is_import =
                    fs::metadata(dir.file(TaskFile::Launch)).is_ok_and(|launch| launch.len() == 0);
                let is_lost = has_results && !is_import;
                Some(if is_lost { LeftoverKind::Unclaimed } else { LeftoverKind::NeverSubmitted })
            }
        })
    }

    /// Removes what [`Registry::orphans`] found, looking again at each while holding its lock; gives what was removed.
    pub fn remove_orphans(&mut self, found: &[Leftover]) -> Result<Vec<Leftover>, RegistryError> {
        let mut removed = Vec::new();
        for leftover in found {
            let dir = self.dir.task(&leftover.id);
            let LockAttempt::Locked(lock) = dir.try_lock()? else { continue };
            if self.judge(&leftover.id, true)? != Some(leftover.kind) {
                continue;
            }
            match leftover.kind {
                LeftoverKind::NeverSubmitted => dir.remove(lock)?,
                LeftoverKind::LaunchOfEnded => dir.remove_inputs()?,
                LeftoverKind::Forgotten => {
                    dir.remove(lock)?;
                    let id = leftover.id.as_str();
                    self.write(|db| db.execute("DELETE FROM forgotten WHERE id = ?1", [id]).map(drop))?;
                }
                LeftoverKind::Unclaimed => continue,
            }
            crash_point(CrashPoint::LeftoverRemoved);
            removed.push(leftover.clone());
        }
        Ok(removed)
    }
}

fn state_of(db: &Connection, id: &TaskId) -> rusqlite::Result<Option<State>> {
    Ok(row::seen(db, id)?.map(|seen| seen.state))
}

fn is_forgotten(db: &Connection, id: &TaskId) -> rusqlite::Result<bool> {
    db.query_row("SELECT EXISTS (SELECT 1 FROM forgotten WHERE id = ?1)", [id.as_str()], |row| row.get(0))
}

fn is_before(at: SystemTime, before_ms: i64) -> bool {
    let at_ms = match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(_) => 0,
    };
    at_ms < before_ms
}
