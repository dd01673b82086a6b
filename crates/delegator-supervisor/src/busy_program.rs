//! Starts a program whose file may just be written by another process: it is busy only for a moment.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::poll_fds::wait_readable;

const MAX_RETRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Calls `start` again while the program is busy. No event reports that a file was closed; a wake-up ends a
/// pause early.
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
