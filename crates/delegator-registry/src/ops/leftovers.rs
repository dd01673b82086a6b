//! Finds and removes what crashes leave behind in `tasks/`.
//!
//! Results without a row are reported, never removed. The state of a submit is always read before the row, so
//! a submit that commits meanwhile is found by its row.

use std::fs;
use std::time::SystemTime;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::TaskId;

use crate::error::{RegistryError, Result};
use crate::files::durable;
use crate::files::lock::{LockAttempt, SubmitEntry, SubmitState};
use crate::files::task_dir::TaskFile;
use crate::registry::Registry;
use crate::row;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeftoverKind {
    /// A submit or import was interrupted between its files and the row; the caller never got a task id.
    NeverSubmitted,
    Pruned,
    /// The task has ended, but its inputs (including secrets) are still there.
    LaunchOfEnded,
    /// Results without a row: the registry was set aside or lost. Reported, never removed.
    WithoutRow,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub id: TaskId,
    pub kind: LeftoverKind,
}

impl Registry {
    /// Finds leftovers. A directory without a row counts only if its submit is known to be dead, or if it has
    /// no entry and is older than `before_ms`: a younger one may belong to a submit without an entry. Reads
    /// every directory, so it is for cleaning only.
    pub fn orphans(&self, before_ms: i64) -> Result<Vec<Leftover>> {
        self.find_leftovers(before_ms, |_| true)
    }

    /// The same, but only directories with inputs, which contain secrets.
    pub fn orphaned_launches(&self, before_ms: i64) -> Result<Vec<Leftover>> {
        self.find_leftovers(before_ms, |id| self.dir.task(id).has_inputs())
    }

    fn find_leftovers(&self, before_ms: i64, is_wanted: impl Fn(&TaskId) -> bool) -> Result<Vec<Leftover>> {
        let tasks = self.dir.tasks();
        let mut found = Vec::new();
        let entries =
            durable::if_exists(fs::read_dir(&tasks)).map_err(RegistryError::file(&tasks, "read"))?;
        for entry in entries.into_iter().flatten() {
            let entry = entry.map_err(RegistryError::file(&tasks, "read"))?;
            // Other names are not task directories.
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<TaskId>().ok()) else {
                continue;
            };
            if !is_wanted(&id) {
                continue;
            }
            // Before the row is read: see the module header.
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if let Some(kind) = self.classify(&id, modified.is_ok_and(|at| is_before(at, before_ms)))? {
                found.push(Leftover { id, kind });
            }
        }
        found.sort_by(|left, right| left.id.cmp(&right.id));
        Ok(found)
    }

    fn classify(&self, id: &TaskId, is_old: bool) -> Result<Option<LeftoverKind>> {
        let is_over = match self.submit_state(id)? {
            SubmitState::UnderWay => false,
            SubmitState::Dead(_) => true,
            SubmitState::Unknown => is_old,
        };
        let has_no_row = |kind| matches!(kind, LeftoverKind::NeverSubmitted | LeftoverKind::WithoutRow);
        Ok(self.classify_directory(id)?.filter(|kind| is_over || !has_no_row(*kind)))
    }

    /// What a directory is, provided that no submit is running in it.
    fn classify_directory(&self, id: &TaskId) -> Result<Option<LeftoverKind>> {
        let dir = self.dir.task(id);
        let pruned = "SELECT EXISTS (SELECT 1 FROM forgotten WHERE id = ?1)";
        let (state, is_pruned) = self.read(|db| {
            let state = row::load_state(db, id)?.map(|stored| stored.state);
            Ok((state, db.query_row(pruned, [id.as_str()], |row| row.get(0))?))
        })?;
        Ok(match state {
            Some(state) if state.is_terminal() && dir.has_inputs() => Some(LeftoverKind::LaunchOfEnded),
            Some(_) => None,
            None if is_pruned => Some(LeftoverKind::Pruned),
            None => {
                let has_results = [TaskFile::Events, TaskFile::Stderr, TaskFile::Snapshot, TaskFile::Report]
                    .into_iter()
                    .any(|file| dir.file(file).exists());
                // An import writes its results first and has an empty launch file.
                let is_import =
                    fs::metadata(dir.file(TaskFile::Launch)).is_ok_and(|launch| launch.len() == 0);
                let is_lost = has_results && !is_import;
                Some(if is_lost { LeftoverKind::WithoutRow } else { LeftoverKind::NeverSubmitted })
            }
        })
    }

    fn submit_state(&self, id: &TaskId) -> Result<SubmitState> {
        let folder = self.dir.submitting();
        SubmitEntry::state(&folder, id).map_err(RegistryError::file(&folder, "read an entry in"))
    }

    /// Removes the files of submits that were killed before they had a row, and returns their ids. Cheap:
    /// usually it reads one empty directory.
    pub fn remove_dead_submits(&mut self) -> Result<Vec<TaskId>> {
        let folder = self.dir.submitting();
        let mut removed = Vec::new();
        for id in SubmitEntry::all(&folder).map_err(RegistryError::file(&folder, "read"))? {
            // The entry stays locked: the row is read after the submit has ended, and no other process
            // examines it.
            let SubmitState::Dead(entry) = self.submit_state(&id)? else { continue };
            // Results stay: their row was lost.
            if self.classify_directory(&id)? == Some(LeftoverKind::NeverSubmitted) {
                let dir = self.dir.task(&id);
                match dir.try_lock()? {
                    LockAttempt::Locked(lock) => {
                        dir.remove(lock)?;
                        crash_point(CrashPoint::LeftoverRemoved);
                        removed.push(id);
                    }
                    // Another process is removing the directory. If it is killed, the entry leads to the
                    // rest.
                    LockAttempt::Held => continue,
                    LockAttempt::Gone => {}
                }
            }
            entry.remove().map_err(RegistryError::file(&folder, "remove an entry in"))?;
        }
        Ok(removed)
    }

    /// Removes what [`Registry::orphans`] found, checking each again under its lock. Returns what was
    /// removed.
    pub fn remove_orphans(&mut self, found: &[Leftover]) -> Result<Vec<Leftover>> {
        let mut removed = Vec::new();
        for leftover in found {
            let dir = self.dir.task(&leftover.id);
            let LockAttempt::Locked(lock) = dir.try_lock()? else { continue };
            if self.classify(&leftover.id, true)? != Some(leftover.kind) {
                continue;
            }
            match leftover.kind {
                LeftoverKind::NeverSubmitted => dir.remove(lock)?,
                LeftoverKind::LaunchOfEnded => dir.remove_inputs()?,
                LeftoverKind::Pruned => {
                    dir.remove(lock)?;
                    let id = leftover.id.as_str();
                    self.write(|db| db.execute("DELETE FROM forgotten WHERE id = ?1", [id]).map(drop))?;
                }
                LeftoverKind::WithoutRow => continue,
            }
            crash_point(CrashPoint::LeftoverRemoved);
            removed.push(leftover.clone());
        }
        Ok(removed)
    }
}

fn is_before(modified: SystemTime, before_ms: i64) -> bool {
    let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).is_ok_and(|at_ms| at_ms < before_ms)
}
