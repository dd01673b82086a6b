//! The lock of a task, held by its supervisor for its whole run, and by a rescuer while it examines the task;
//! and the entries of running submits: `submitting/<task id>`.
//!
//! The process that starts a supervisor takes the lock first and passes the open file on. So a task that is
//! being started never looks abandoned, however slow the start.
//!
//! It is an advisory lock on an open file (`flock`): the kernel releases it when the holder dies. The file is
//! close-on-exec, so an agent cannot inherit it. The file is removed only with the whole directory and by the
//! holder; a process that opened it earlier notices by comparing its file with the one of that name.
//!
//! A submit writes the launch file (prompt and variables) before the row, so a process killed in between
//! leaves a file without a row. Therefore each submit first creates an entry, an empty locked file, and
//! removes it when the row is committed or the directory removed. An entry that can be locked belongs to a
//! dead submit, whose files can be removed at once. Entries are not synced. If a power cut removes one, the
//! directory is judged by its age.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use delegator_domain::task::TaskId;

use super::durable;

/// A lock of one task, held until this value is dropped or the process ends.
#[derive(Debug)]
pub struct LockGuard {
    /// `None` once it is handed over.
    file: Option<File>,
}

impl LockGuard {
    pub(crate) fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.file.as_ref().map_or(Ok(false), |file| is_file_at(path, file))
    }

    /// The open file, for a process that takes the lock over. The lock is held as long as any copy of the
    /// file is open.
    pub fn hand_over(mut self) -> Option<OwnedFd> {
        self.file.take().map(OwnedFd::from)
    }
}

impl Drop for LockGuard {
    /// Unlock explicitly: a child that another thread is just starting has a copy of the descriptor until it
    /// calls exec, and closing ours would leave the lock held until then.
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = file.unlock();
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimKind {
    /// To submit a task that works in it. Several such claims exclude only a removal.
    Use,
    /// To apply or remove it. Excludes every other claim.
    Removal,
}

/// A claim on a worktree, held until this value is dropped or the process ends.
#[derive(Debug)]
pub struct WorktreeClaim {
    _lock: LockGuard,
}

/// The file stays until the directory of its task is removed, so all processes lock the same one.
pub(crate) fn try_claim(path: &Path, kind: ClaimKind) -> io::Result<Option<WorktreeClaim>> {
    let file = durable::open_lock_file(path)?;
    let locked = match kind {
        ClaimKind::Use => file.try_lock_shared(),
        ClaimKind::Removal => file.try_lock(),
    };
    match locked {
        Ok(()) => Ok(Some(WorktreeClaim { _lock: LockGuard { file: Some(file) } })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Marks a task as shown to a person, like other processes at the same time. `None` if that is impossible:
/// then the person gets a notification although the task is shown.
pub(crate) fn mark_screen(path: &Path) -> Option<LockGuard> {
    let file = durable::open_lock_file(path).ok()?;
    // A check holds the lock for a moment.
    let is_marked = || file.try_lock_shared().inspect_err(|_| std::thread::yield_now()).is_ok();
    (0..MAX_TRIES).any(|_| is_marked()).then_some(LockGuard { file: Some(file) })
}

/// How often a check tries to take the lock.
const SCREEN_CHECKS: u32 = 5;

pub(crate) fn has_screen(path: &Path) -> bool {
    let opened = durable::open_private(path, fs::OpenOptions::new().read(true).write(true));
    let Ok(file) = opened else { return false };
    // Another check holds the lock for a moment.
    let try_lock = || file.try_lock().inspect_err(|_| std::thread::yield_now());
    let is_marked = (0..SCREEN_CHECKS).all(|_| matches!(try_lock(), Err(TryLockError::WouldBlock)));
    drop(LockGuard { file: Some(file) });
    is_marked
}

#[derive(Debug)]
pub enum LockAttempt {
    Locked(LockGuard),
    /// Another process holds it: a live supervisor, or a rescuer.
    Held,
    /// The task's directory does not exist (any more).
    Gone,
}

pub(crate) fn try_lock(path: &Path) -> io::Result<LockAttempt> {
    lock_opened(path, durable::open_lock_file(path))
}

/// Like [`try_lock`], but creates no file: a missing one is `Gone`.
pub(crate) fn try_lock_existing(path: &Path) -> io::Result<LockAttempt> {
    lock_opened(path, durable::open_private(path, fs::OpenOptions::new().read(true).write(true)))
}

/// The standard library opens all files close-on-exec.
fn lock_opened(path: &Path, opened: io::Result<File>) -> io::Result<LockAttempt> {
    durable::if_exists(opened)?.map_or(Ok(LockAttempt::Gone), |file| lock(path, file))
}

/// Takes over a lock that was handed over. If `file` is not this lock, tries to take it.
pub(crate) fn adopt(path: &Path, file: OwnedFd) -> io::Result<LockAttempt> {
    let file = File::from(file);
    if is_file_at(path, &file)? { lock(path, file) } else { try_lock(path) }
}

/// Locking again through the same open file succeeds.
fn lock(path: &Path, file: File) -> io::Result<LockAttempt> {
    match file.try_lock() {
        Ok(()) if is_file_at(path, &file)? => Ok(LockAttempt::Locked(LockGuard { file: Some(file) })),
        Ok(()) => Ok(LockAttempt::Gone),
        Err(TryLockError::WouldBlock) => Ok(LockAttempt::Held),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn is_file_at(path: &Path, file: &File) -> io::Result<bool> {
    let open = file.metadata()?;
    let current = durable::if_exists(fs::symlink_metadata(path))?;
    Ok(current.is_some_and(|current| (current.dev(), current.ino()) == (open.dev(), open.ino())))
}

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
            match try_lock(&path)? {
                LockAttempt::Locked(lock) => return Ok(Some(SubmitEntry { path, _lock: lock })),
                LockAttempt::Gone => durable::make_private_dir(folder)?,
                LockAttempt::Held => return Ok(None),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    pub(crate) fn state(folder: &Path, id: &TaskId) -> io::Result<SubmitState> {
        let path = folder.join(id.as_str());
        Ok(match try_lock_existing(&path)? {
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
