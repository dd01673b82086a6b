//! Locks of prepared checkouts: one thread prepares, copies or deletes a revision at a time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct SetupLocks {
    held: Mutex<BTreeSet<PathBuf>>,
    released: Condvar,
}

pub(crate) struct SetupLock<'a> {
    locks: &'a SetupLocks,
    dir: PathBuf,
}

impl SetupLocks {
    pub(crate) fn try_lock(&self, dir: &Path) -> Option<SetupLock<'_>> {
        let is_new = self.held().insert(dir.to_owned());
        is_new.then(|| SetupLock { locks: self, dir: dir.to_owned() })
    }

    /// `None` if the wait was cancelled.
    pub(crate) fn lock(&self, dir: &Path, cancel: &AtomicBool) -> Option<SetupLock<'_>> {
        loop {
            if let Some(lock) = self.try_lock(dir) {
                return Some(lock);
            }
            if cancel.load(Ordering::Relaxed) {
                return None;
            }
            drop(self.released.wait_timeout_while(self.held(), POLL_INTERVAL, |held| held.contains(dir)));
        }
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SetupLock<'_> {
    fn drop(&mut self) {
        self.locks.held().remove(&self.dir);
        self.locks.released.notify_all();
    }
}
