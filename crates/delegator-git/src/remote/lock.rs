//! The lock of a mirror: one process at a time changes it. The kernel releases it when its holder ends.
//!
//! The modification time of its file is when the mirror was used last. The file itself is never deleted: a
//! process may wait for its lock.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::event::{Timespec, poll};
use rustix::fs::{Timestamps, UTIME_NOW, UTIME_OMIT, futimens};

use crate::error::{GitError, Result};
use crate::run::Git;

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct MirrorLock {
    _file: File,
}

/// Waits for the lock as long as the time limit of `git` permits, and records the use of the mirror.
pub(super) fn lock(path: &Path, git: &Git) -> Result<MirrorLock> {
    let failed = |error| GitError::io("lock", path)(error);
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => {
                record_use(&file).map_err(failed)?;
                return Ok(MirrorLock { _file: file });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let remaining = git.remaining();
        if git.is_cancelled() {
            return Err(GitError::Cancelled { command: "fetch".to_owned() });
        }
        if remaining.is_zero() {
            return Err(failed(io::ErrorKind::TimedOut.into()));
        }
        let pause = Timespec::try_from(remaining.min(POLL_INTERVAL))
            .map_err(|error| failed(io::Error::other(error)))?;
        // An interrupted pause only polls sooner.
        let _ = poll(&mut [], Some(&pause));
    }
}

/// Sets the modification time to now.
fn record_use(file: &File) -> io::Result<()> {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps { last_access: time(UTIME_OMIT), last_modification: time(UTIME_NOW) };
    Ok(futimens(file, &times)?)
}

/// The lock of a mirror that was used last before this time; `None` if another process has it, or if it was
/// used since.
pub(super) fn lock_unused(path: &Path, used_before: SystemTime) -> io::Result<Option<MirrorLock>> {
    let file = File::options().write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok((file.metadata()?.modified()? < used_before).then_some(MirrorLock { _file: file }))
}
