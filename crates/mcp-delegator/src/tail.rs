//! Waiting for a file to grow.
//!
//! inotify wakes us; because not every file system sends it, we also look once in a while.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

/// How long to trust the watch before looking anyway.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct GrowthWatch {
    watch: OwnedFd,
}

/// Why waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// There may be more to read.
    Perhaps,
    TimeIsUp,
}

impl GrowthWatch {
    pub fn on(path: &Path) -> io::Result<GrowthWatch> {
        let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        add_watch(
            &watch,
            path,
            WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF,
        )?;
        Ok(GrowthWatch { watch })
    }

    /// Sleeps until something happens to the file, or it is time to look again, or `deadline`.
    pub fn wait(&self, deadline: Option<Instant>) -> io::Result<Waited> {
        let left = deadline.map_or(LOOK_AGAIN, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(Waited::TimeIsUp);
        }
        let nap = left.min(LOOK_AGAIN);
        let timeout = Timespec { tv_sec: nap.as_secs().cast_signed(), tv_nsec: nap.subsec_nanos().into() };
        let mut watched = [PollFd::new(&self.watch, PollFlags::IN)];
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.forget_events()?;
        Ok(Waited::Perhaps)
    }

    /// What exactly happened does not matter: the file itself is looked at next.
    fn forget_events(&self) -> io::Result<()> {
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

/// Whether a file is shorter than what was already read of it: somebody has begun it anew.
pub fn was_cut(file: &File, read: u64) -> io::Result<bool> {
    Ok(file.metadata()?.len() < read)
}

/// What became of the name of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Same,
    /// Another file has it now: the old one was rotated away or replaced.
    Another,
    Gone,
}

pub fn name_of(file: &File, path: &Path) -> io::Result<Name> {
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) if (named.dev(), named.ino()) == (ours.dev(), ours.ino()) => Ok(Name::Same),
        Ok(_) => Ok(Name::Another),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Name::Gone),
        Err(error) => Err(error),
    }
}
