//! Clocks: wall time to compare with the registry, monotonic time to compare with timestamps in agents' events.

#![expect(clippy::disallowed_methods, reason = "load tests sleep to keep a rate")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, as in the registry.
pub(crate) fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Microseconds of the monotonic clock, as in timed events.
pub(crate) fn monotonic_us() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn monotonic_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// Sleeps until that moment; returns at once if it has passed.
pub(crate) fn sleep_until(moment: Instant) {
    sleep(moment.saturating_duration_since(Instant::now()));
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
