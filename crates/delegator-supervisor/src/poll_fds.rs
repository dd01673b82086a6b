//! Waits for file descriptors, always with a deadline.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Whether one of them is readable before the deadline.
pub(crate) fn wait_readable<F: AsFd>(fds: &[F], deadline: Instant) -> io::Result<bool> {
    let mut polled: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let remaining = Timespec::try_from(remaining).map_err(io::Error::other)?;
        match poll(&mut polled, Some(&remaining)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
