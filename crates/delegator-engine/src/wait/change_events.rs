//! Wakes a waiting thread when a supervisor has announced a change of its task.
//!
//! A supervisor announces that its task has begun, that the agent has named its thread and that the task has
//! ended by updating the times of the task's directory, after the change is committed. Without inotify, or on
//! a file system that does not report such an update, the waiting thread notices the change a moment later:
//! it also compares the change mark of the registry, and watches the supervisor process.
//!
//! Closing an inotify descriptor makes the kernel wait for a grace period, ten milliseconds and more. So only
//! a long-running process uses inotify, and it closes none: a wait takes an idle one and returns it. A
//! command would wait at its exit.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::ops::DerefMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use delegator_domain::task::TaskId;
use delegator_registry::TaskDir;
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};

/// Enough for several events; each has at most a header, because only directories themselves are watched.
const BUFFER_BYTES: usize = 512;

static IDLE: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

fn idle() -> impl DerefMut<Target = Vec<OwnedFd>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(super) struct ChangeEvents {
    /// `None` only during drop.
    inotify: Option<OwnedFd>,
    watched: HashMap<TaskId, i32>,
}

impl ChangeEvents {
    /// `None` if the user has no inotify instance left.
    pub(super) fn new() -> Option<ChangeEvents> {
        let idle = idle().pop();
        let inotify = idle.map_or_else(|| init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC), Ok);
        Some(ChangeEvents { inotify: Some(inotify.ok()?), watched: HashMap::new() })
    }

    /// Begins to watch a task. A change that is announced after this call is not missed.
    pub(super) fn watch(&mut self, dir: &TaskDir) {
        // Without its directory the task has ended.
        if let Ok(watch) = add_watch(self.as_fd(), dir.path(), WatchFlags::ATTRIB | WatchFlags::ONLYDIR) {
            self.watched.insert(dir.id().clone(), watch);
        }
    }

    pub(super) fn retain(&mut self, is_wanted: impl Fn(&TaskId) -> bool) {
        let unwanted: Vec<i32> =
            self.watched.extract_if(|id, _| !is_wanted(id)).map(|(_, watch)| watch).collect();
        for watch in unwanted {
            let _ = remove_watch(self.as_fd(), watch);
        }
    }

    pub(super) fn take_changed(&self) -> HashSet<&TaskId> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut events = Reader::new(self.as_fd(), &mut buffer);
        let mut changed = HashSet::new();
        let mut has_missed_some = false;
        while let Ok(event) = events.next() {
            changed.insert(event.wd());
            has_missed_some |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
        }
        let watched = self.watched.iter();
        watched.filter(|(_, watch)| has_missed_some || changed.contains(*watch)).map(|(id, _)| id).collect()
    }
}

impl Drop for ChangeEvents {
    fn drop(&mut self) {
        self.retain(|_| false);
        self.take_changed();
        idle().extend(self.inotify.take());
    }
}

impl AsFd for ChangeEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.inotify {
            Some(inotify) => inotify.as_fd(),
            None => unreachable!("the descriptor is taken only during drop"),
        }
    }
}
