//! Waits for file descriptors, always with a deadline.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

const MAX_RETRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

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

/// Calls `start` again while the program is busy: another process may just be writing its file. No event
/// reports that a file was closed; a wake-up ends a pause early.
pub(crate) fn retry_while_busy<T>(
    wake: Option<BorrowedFd<'_>>,
    mut start: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    for _ in 0..MAX_RETRIES {
        match start() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                wait_readable(wake.as_slice(), Instant::now() + PAUSE)?;
            }
            outcome => return outcome,
        }
    }
    start()
}
