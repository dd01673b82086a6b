//! Wakes a waiting thread when a supervisor has announced a change of its task.
//!
//! A supervisor announces that its task has begun, that the agent has named its thread and that the task has ended by
//! updating the times of the task's directory, after the change is committed. Without inotify, or on a file system that
//! does not report such an update, the waiting thread notices the change a moment later: it also compares the change mark
//! of the registry, and watches the supervisor process.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use delegator_domain::task::TaskId;
use delegator_registry::TaskDir;
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};

/// Enough for several events; each has at most a header, because only directories themselves are watched.
const BUFFER_BYTES: usize = 512;

#[derive(Debug)]
pub(super) struct ChangeEvents {
    inotify: OwnedFd,
    watched: HashMap<TaskId, i32>,
}

impl ChangeEvents {
    /// `None` if the user has no inotify instance left.
    pub(super) fn new() -> Option<ChangeEvents> {
        let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        Some(ChangeEvents { inotify, watched: HashMap::new() })
    }

    /// Begins to watch a task. A change that is announced after this call is not missed.
    pub(super) fn watch(&mut self, dir: &TaskDir) {
        // Without its directory the task has ended.
        if let Ok(watch) = add_watch(&self.inotify, dir.path(), WatchFlags::ATTRIB | WatchFlags::ONLYDIR) {
            self.watched.insert(dir.id().clone(), watch);
        }
    }

    /// Stops watching the tasks that are not wanted.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&TaskId) -> bool) {
        for (_, watch) in self.watched.extract_if(|id, _| !is_wanted(id)) {
            let _ = remove_watch(&self.inotify, watch);
        }
    }

    /// The watched tasks with a change that was announced since the last call.
    pub(super) fn take_changed(&self) -> HashSet<&TaskId> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut events = Reader::new(&self.inotify, &mut buffer);
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

impl AsFd for ChangeEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
