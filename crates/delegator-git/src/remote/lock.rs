//! The lock of a mirror: one process at a time changes it. The kernel releases it when its holder ends.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::event::{Timespec, poll};

use crate::error::GitError;
use crate::run::Git;

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct MirrorLock {
    _file: File,
}

/// Waits for the lock as long as the time limit of `git` permits.
pub(super) fn lock(path: &Path, git: &Git) -> Result<MirrorLock, GitError> {
    let failed = |error| GitError::io("lock", path)(error);
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(MirrorLock { _file: file }),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let remaining = git.remaining().map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => GitError::Cancelled { command: "fetch".to_owned() },
            _ => failed(error),
        })?;
        let pause = Timespec::try_from(remaining.min(POLL_INTERVAL))
            .map_err(|error| failed(io::Error::other(error)))?;
        // An interrupted pause only polls sooner.
        let _ = poll(&mut [], Some(&pause));
    }
}
