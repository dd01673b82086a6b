//! Waits for a file to grow.
//!
//! It uses inotify, and also polls, because not every file system (for example NFS) sends inotify events.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

/// Poll interval for file systems without inotify events.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct GrowthWatch {
    watch: OwnedFd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowthWait {
    MayHaveGrown,
    TimedOut,
}

impl GrowthWatch {
    pub fn on(path: &Path) -> io::Result<GrowthWatch> {
        let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        add_watch(
            &watch,
            path,
            WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                // In a directory, for a file that does not exist yet.
                | WatchFlags::CREATE
                | WatchFlags::MOVED_TO,
        )?;
        Ok(GrowthWatch { watch })
    }

    pub fn wait(&self, deadline: Option<Instant>) -> io::Result<GrowthWait> {
        let remaining =
            deadline.map_or(POLL_INTERVAL, |deadline| deadline.saturating_duration_since(Instant::now()));
        if remaining.is_zero() {
            return Ok(GrowthWait::TimedOut);
        }
        let interval = remaining.min(POLL_INTERVAL);
        let timeout =
            Timespec { tv_sec: interval.as_secs().cast_signed(), tv_nsec: interval.subsec_nanos().into() };
        let mut watched = [PollFd::new(&self.watch, PollFlags::IN)];
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.drain_events()?;
        Ok(GrowthWait::MayHaveGrown)
    }

    /// Discards the events: the caller examines the file itself.
    fn drain_events(&self) -> io::Result<()> {
        let mut buffer = [0_u8; 1024];
        loop {
            match rustix::io::read(&self.watch, &mut buffer) {
                Ok(0) | Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

pub fn was_truncated(file: &File, read_bytes: u64) -> io::Result<bool> {
    Ok(file.metadata()?.len() < read_bytes)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathState {
    SameFile,
    /// Another file: the open one was rotated or replaced.
    Replaced,
    Removed,
}

pub fn path_state(file: &File, path: &Path) -> io::Result<PathState> {
    let open_metadata = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) if (named.dev(), named.ino()) == (open_metadata.dev(), open_metadata.ino()) => {
            Ok(PathState::SameFile)
        }
        Ok(_) => Ok(PathState::Replaced),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(PathState::Removed),
        Err(error) => Err(error),
    }
}
