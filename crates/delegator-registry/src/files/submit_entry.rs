//! Entries of submits under way: `submitting/<task id>`.
//!
//! A submit writes the launch file (prompt and variables) before the row, so a process that is killed in between leaves a
//! file that no row knows of. Each submit therefore makes an entry first, an empty file that it keeps locked, and removes
//! it when the row is committed or the directory is gone again. The kernel drops the lock with the process: an entry that
//! can be locked is that of a submit that died, and what it left can be removed at once.
//!
//! Entries are not synced. One that a power cut takes away leaves a directory that is judged by its age.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use delegator_domain::task::TaskId;

use super::durable;
use super::lock::{self, LockAttempt, LockGuard};

/// A sweep that meets a new entry holds it for a moment.
const MAX_TRIES: u32 = 1_000;

/// The entry of a submit of this process. Dropped, it only loses its lock, as it does when the process is killed.
#[derive(Debug)]
pub(crate) struct SubmitEntry {
    path: PathBuf,
    _lock: LockGuard,
}

/// What an entry says of a submit.
#[derive(Debug)]
pub(crate) enum SubmitState {
    /// There is no entry: it has ended in order, or it never made one.
    Unknown,
    UnderWay,
    /// It was killed. No other process can judge it while this value holds the lock.
    Dead(SubmitEntry),
}

impl SubmitEntry {
    /// Makes the entry of a task in `folder`, which is made if it is missing.
    pub(crate) fn create(folder: &Path, id: &TaskId) -> io::Result<SubmitEntry> {
        let path = folder.join(id.as_str());
        for _ in 0..MAX_TRIES {
            match lock::try_lock(&path, id)? {
                LockAttempt::Locked(lock) => return Ok(SubmitEntry { path, _lock: lock }),
                LockAttempt::Gone => durable::make_private_dir(folder)?,
                LockAttempt::Held => std::thread::yield_now(),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// What the entry of a task says.
    pub(crate) fn state(folder: &Path, id: &TaskId) -> io::Result<SubmitState> {
        let path = folder.join(id.as_str());
        Ok(match lock::try_lock_existing(&path, id)? {
            LockAttempt::Locked(lock) => SubmitState::Dead(SubmitEntry { path, _lock: lock }),
            LockAttempt::Held => SubmitState::UnderWay,
            LockAttempt::Gone => SubmitState::Unknown,
        })
    }

    /// The tasks that have an entry.
    pub(crate) fn all(folder: &Path) -> io::Result<Vec<TaskId>> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
        Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
    }

    /// Removes the entry, and only then releases its lock.
    pub(crate) fn remove(self) -> io::Result<()> {
        durable::remove_if_exists(&self.path).map(drop)
    }
}
