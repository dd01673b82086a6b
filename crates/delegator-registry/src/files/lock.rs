//! The lock of a task: held by its supervisor for life, and by a rescuer while it judges.
//!
//! Whoever starts a supervisor takes the lock first and hands the open file on to it. So there is no moment, however
//! slow the start, in which a task that is being started looks abandoned.
//!
//! An advisory lock on an open file (`flock`): the kernel drops it when the holder dies, however it dies. The file is
//! close-on-exec, so an agent cannot inherit it and keep a dead supervisor alive. It is removed only with the whole
//! directory and by whoever holds it; somebody who opened it before that finds out by comparing what they locked with
//! what has the name now.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use delegator_domain::task::TaskId;
use rustix::fs::FlockOperation;

use super::durable;

/// The lock of one task, held until this value is dropped or the process ends.
#[derive(Debug)]
pub struct LockGuard {
    task: TaskId,
    /// There until it is handed over.
    file: Option<File>,
}

impl LockGuard {
    /// Whose lock it is.
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    pub(crate) fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.file.as_ref().map_or(Ok(false), |file| is_file_at(path, file))
    }

    /// The open file, for a process that is to hold the lock from now on. It is held as long as any copy is open.
    pub fn hand_over(mut self) -> Option<OwnedFd> {
        self.file.take().map(OwnedFd::from)
    }
}

impl Drop for LockGuard {
    /// Said, not left to closing: a child that another thread is just starting has a copy of the descriptor until it
    /// becomes its program, and would keep the lock that long.
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = rustix::fs::flock(file, FlockOperation::Unlock);
        }
    }
}

/// What trying to lock gave.
#[derive(Debug)]
pub enum LockAttempt {
    Locked(LockGuard),
    /// Somebody holds it: a living supervisor, or another rescuer.
    Held,
    /// The task's directory is not there (any more).
    Gone,
}

pub(crate) fn try_lock(path: &Path, task: &TaskId) -> io::Result<LockAttempt> {
    open_and_lock(path, task, fs::OpenOptions::new().create(true))
}

/// The same, and makes no file: one that is not there is gone.
pub(crate) fn try_lock_existing(path: &Path, task: &TaskId) -> io::Result<LockAttempt> {
    open_and_lock(path, task, &mut fs::OpenOptions::new())
}

fn open_and_lock(path: &Path, task: &TaskId, options: &mut fs::OpenOptions) -> io::Result<LockAttempt> {
    // The standard library opens everything close-on-exec.
    let file = match durable::open_private(path, options.read(true).write(true).truncate(false)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockAttempt::Gone),
        Err(error) => return Err(error),
    };
    lock(path, task, file)
}

/// Goes on holding a lock that was handed over. A file that is not this lock is none.
pub(crate) fn adopt(path: &Path, task: &TaskId, file: OwnedFd) -> io::Result<LockAttempt> {
    let file = File::from(file);
    if is_file_at(path, &file)? { lock(path, task, file) } else { try_lock(path, task) }
}

/// Locking what is locked through the same open file succeeds.
fn lock(path: &Path, task: &TaskId, file: File) -> io::Result<LockAttempt> {
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) if is_file_at(path, &file)? => {
            Ok(LockAttempt::Locked(LockGuard { task: task.clone(), file: Some(file) }))
        }
        Ok(()) => Ok(LockAttempt::Gone),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(LockAttempt::Held),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether `path` still names this very file.
fn is_file_at(path: &Path, file: &File) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(current) => Ok(current.dev() == open.dev() && current.ino() == open.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
