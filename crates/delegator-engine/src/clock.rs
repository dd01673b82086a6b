//! Time, sleeping and randomness of the engine.
//!
//! The only module that reads the wall clock. The wall clock dates records; it never measures a limit, because it can be
//! set. In a simulation all of this comes from the simulator.

#![expect(clippy::disallowed_methods, reason = "this module reads the wall clock for the engine")]

use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delegator_domain::task::{TaskId, TaskLocation};
use delegator_registry::Nonce;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::EngineError;

/// Milliseconds since 1970; 0 if the clock is set before that.
pub(crate) fn now_ms() -> i64 {
    #[cfg(all(test, debug_assertions))]
    if let Some(now_ms) = crate::simulation::in_simulation(|simulator| simulator.now_ms()) {
        return now_ms;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn random_bytes() -> Result<[u8; 16], EngineError> {
    #[cfg(all(test, debug_assertions))]
    if let Some(bytes) = crate::simulation::in_simulation(|simulator| simulator.random_bytes()) {
        return Ok(bytes);
    }
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| EngineError::Randomness { detail: error.to_string() })?;
    Ok(bytes)
}

pub(crate) fn fresh_id() -> Result<TaskId, EngineError> {
    random_bytes().map(|bytes| TaskId::from_random(TaskLocation::Local, bytes))
}

/// Callers draw all nonces they may need before a transaction begins, so that it cannot fail for lack of randomness.
pub(crate) fn fresh_nonces(count: usize) -> Result<Vec<Nonce>, EngineError> {
    (0..count).map(|_| random_bytes().map(Nonce::from_random)).collect()
}

pub(crate) fn sleep(length: Duration) -> Result<(), EngineError> {
    #[cfg(all(test, debug_assertions))]
    if crate::simulation::in_simulation(|simulator| simulator.sleep(length)).is_some() {
        return Ok(());
    }
    pause(&mut [], length)
}

/// Sleeps until the time is over or `waker` is readable.
pub(crate) fn sleep_unless_woken(length: Duration, waker: BorrowedFd<'_>) -> Result<(), EngineError> {
    pause(&mut [PollFd::from_borrowed_fd(waker, PollFlags::IN)], length)
}

fn pause(polled: &mut [PollFd<'_>], length: Duration) -> Result<(), EngineError> {
    match poll(polled, Some(&timespec(length))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(EngineError::Io { doing: "wait", source: error.into() }),
    }
}

pub(crate) fn timespec(length: Duration) -> Timespec {
    Timespec { tv_sec: length.as_secs().cast_signed(), tv_nsec: length.subsec_nanos().into() }
}
