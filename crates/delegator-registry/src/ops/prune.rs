//! Prunes ended tasks: row, transitions, labels and directory.
//!
//! Rows are deleted first, and their ids are stored in `forgotten` until the directories are removed, so a
//! crash in between leaves directories that are known to be pruned. Works in small transactions, so that no
//! process waits long for the write lock. A live task is never pruned, nor one whose report a follower needs.

use std::collections::BTreeMap;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::TaskId;
use rusqlite::Connection;

use super::chain;
use super::history;
use super::restore_points::{self, PointToRecord};
use super::worktrees;
use crate::error::{RegistryError, Result};
use crate::files::lock::LockAttempt;
use crate::registry::{Registry, query_all};
use crate::row;
use crate::task::id_from;

/// Rows deleted in one transaction, which takes a few milliseconds.
const ROWS_PER_TRANSACTION: usize = 200;

#[derive(Debug, Default)]
pub struct PruneOutcome {
    pub pruned: Vec<TaskId>,
    /// Pruned tasks whose directory could not be removed; later passes try again.
    pub not_removed: Vec<(TaskId, RegistryError)>,
    /// Not ended, needed by a follower, or with a worktree that exists; left alone.
    pub alive: Vec<TaskId>,
    pub unknown: Vec<TaskId>,
}

impl Registry {
    /// Prunes those of the tasks that have ended, with their files. Live tasks are left alone.
    pub fn prune(&mut self, ids: &[TaskId]) -> Result<PruneOutcome> {
        self.prune_and_record(ids, &BTreeMap::new())
    }

    /// The same; records the given restore points when the row of their task is deleted.
    pub fn prune_and_record(
        &mut self,
        ids: &[TaskId],
        points: &BTreeMap<TaskId, Vec<PointToRecord>>,
    ) -> Result<PruneOutcome> {
        let mut outcome = PruneOutcome::default();
        for chunk in ids.chunks(ROWS_PER_TRANSACTION) {
            self.write(|db| {
                chunk.iter().try_for_each(|id| delete_row(db, id, points.get(id), &mut outcome))
            })?;
            crash_point(CrashPoint::RowsForgotten);
        }
        // After all rows: each commit would otherwise wait until the disk has written the removals before it.
        outcome.not_removed = self.remove_pruned_directories(&outcome.pruned)?.1;
        Ok(outcome)
    }

    /// Removes directories of pruned tasks that a crash, or a supervisor that was still exiting, left behind.
    pub fn finish_pruning(&mut self) -> Result<usize> {
        let left = self.read(|db| query_all(db, "SELECT id FROM forgotten", (), id_from))?;
        let (removed, not_removed) = self.remove_pruned_directories(&left)?;
        not_removed.into_iter().next().map_or(Ok(removed), |(_, error)| Err(error))
    }

    pub fn has_unfinished_pruning(&self) -> Result<bool> {
        self.read(|db| db.query_row("SELECT EXISTS (SELECT 1 FROM forgotten)", (), |row| row.get(0)))
    }

    /// The number of removed directories, and those that could not be removed.
    fn remove_pruned_directories(&mut self, ids: &[TaskId]) -> Result<(usize, Vec<(TaskId, RegistryError)>)> {
        let (mut removed, mut failed) = (Vec::new(), Vec::new());
        for id in ids {
            let dir = self.dir.task(id);
            let is_removed = dir.try_lock().and_then(|lock| match lock {
                LockAttempt::Locked(lock) => dir.remove(lock).map(|()| true),
                LockAttempt::Gone => Ok(true),
                // Its supervisor has recorded the end and is exiting.
                LockAttempt::Held => Ok(false),
            });
            match is_removed {
                Ok(true) => {
                    crash_point(CrashPoint::DirectoryRemoved);
                    removed.push(id);
                }
                Ok(false) => {}
                Err(error) => failed.push((id.clone(), error)),
            }
        }
        if !removed.is_empty() {
            self.write(|db| {
                let mut statement = db.prepare("DELETE FROM forgotten WHERE id = ?1")?;
                removed.iter().try_for_each(|id| statement.execute([id.as_str()]).map(drop))
            })?;
            crash_point(CrashPoint::ForgettingDone);
        }
        Ok((removed.len(), failed))
    }
}

/// A task stays while a follower needs its report, or its worktree has what may exist nowhere else.
fn delete_row(
    db: &Connection,
    id: &TaskId,
    points: Option<&Vec<PointToRecord>>,
    outcome: &mut PruneOutcome,
) -> rusqlite::Result<()> {
    let Some(stored) = row::load_state(db, id)? else {
        outcome.unknown.push(id.clone());
        return Ok(());
    };
    let is_needed = db.prepare_cached(chain::IS_NEEDED)?.query_row([id.as_str()], |row| row.get(0))?;
    if !stored.state.is_terminal() || is_needed || worktrees::has_present(db, stored.seq)? {
        outcome.alive.push(id.clone());
        return Ok(());
    }
    restore_points::record(db, stored.seq, id, points.map_or(&[], Vec::as_slice))?;
    db.execute("INSERT OR IGNORE INTO forgotten (id) VALUES (?1)", [id.as_str()])?;
    history::delete_words(db, stored.seq)?;
    db.execute("DELETE FROM tasks WHERE seq = ?1", [stored.seq])?;
    outcome.pruned.push(id.clone());
    Ok(())
}
