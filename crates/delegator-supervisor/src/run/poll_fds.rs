//! Waits for file descriptors, always with a deadline.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Whether one of them is readable before the deadline.
pub(crate) fn wait_readable(fds: &[&dyn AsFd], deadline: Instant) -> io::Result<bool> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)).collect();
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        match poll(&mut polled, Some(&timespec(remaining))) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until one of them is ready or the deadline has passed.
pub(crate) fn wait_any(fds: &[OwnedFd], deadline: Instant) -> io::Result<()> {
    let fds: Vec<&dyn AsFd> = fds.iter().map(|fd| fd as &dyn AsFd).collect();
    wait_readable(&fds, deadline).map(|_| ())
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    let tv_sec = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: i64::from(duration.subsec_nanos()) }
}
