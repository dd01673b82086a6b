//! Entries of running submits: `submitting/<task id>`.
//!
//! A submit writes the launch file (prompt and variables) before the row, so a process killed in between
//! leaves a file without a row. Therefore each submit first creates an entry, an empty locked file, and
//! removes it when the row is committed or the directory removed. The kernel releases the lock with the
//! process: an entry that can be locked belongs to a dead submit, whose files can be removed at once.
//!
//! Entries are not synced. If a power cut removes one, the directory is judged by its age.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use delegator_domain::task::TaskId;

use super::durable;
use super::lock::{self, LockAttempt, LockGuard};

/// Cleaning may lock and remove a new entry before its creator locks it, so retry.
const MAX_TRIES: u32 = 1_000;

/// The entry of a submit in this process. Dropping it only releases the lock, as killing the process does.
#[derive(Debug)]
pub(crate) struct SubmitEntry {
    path: PathBuf,
    _lock: LockGuard,
}

#[derive(Debug)]
pub(crate) enum SubmitState {
    /// There is no entry: the submit has ended, or never created one.
    Unknown,
    UnderWay,
    /// The submit was killed. No other process can examine it while this value holds the lock.
    Dead(SubmitEntry),
}

impl SubmitEntry {
    /// Creates the entry of a task in `folder`, creating the folder if needed. `None` if another process uses
    /// it: a submit with the same id, or cleaning.
    pub(crate) fn create(folder: &Path, id: &TaskId) -> io::Result<Option<SubmitEntry>> {
        let path = folder.join(id.as_str());
        for _ in 0..MAX_TRIES {
            match lock::try_lock(&path, id)? {
                LockAttempt::Locked(lock) => return Ok(Some(SubmitEntry { path, _lock: lock })),
                LockAttempt::Gone => durable::make_private_dir(folder)?,
                LockAttempt::Held => return Ok(None),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    pub(crate) fn state(folder: &Path, id: &TaskId) -> io::Result<SubmitState> {
        let path = folder.join(id.as_str());
        Ok(match lock::try_lock_existing(&path, id)? {
            LockAttempt::Locked(lock) => SubmitState::Dead(SubmitEntry { path, _lock: lock }),
            LockAttempt::Held => SubmitState::UnderWay,
            LockAttempt::Gone => SubmitState::Unknown,
        })
    }

    pub(crate) fn all(folder: &Path) -> io::Result<Vec<TaskId>> {
        let Some(entries) = durable::if_exists(fs::read_dir(folder))? else { return Ok(Vec::new()) };
        let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
        Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
    }

    /// Removes the entry before releasing its lock.
    pub(crate) fn remove(self) -> io::Result<()> {
        durable::remove_if_exists(&self.path).map(drop)
    }
}
