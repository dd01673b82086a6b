//! Waits for SQLite's write lock.
//!
//! SQLite's own handler sleeps up to 100 ms per try, and the lock goes to a process that happens to be awake:
//! with twenty writers, one in a hundred waited 130 ms and the slowest 0.8 s for a transaction of half a
//! millisecond. Short sleeps give every writer a fair chance. Gives up after [`MAX_TRIES`].

#![expect(clippy::disallowed_methods, reason = "SQLite has no way to wait for its lock, only to retry")]

use std::time::Duration;

/// About five seconds of sleep. Tries are counted, not time: a process that was stopped for a minute has not
/// yet tried.
const MAX_TRIES: i32 = 574;

/// The callback that SQLite calls while the lock is held: sleeps, or returns false to give up.
pub(crate) fn busy_handler(tries: i32) -> bool {
    if tries >= MAX_TRIES {
        return false;
    }
    std::thread::sleep(delay(tries));
    true
}

fn delay(tries: i32) -> Duration {
    Duration::from_millis(match tries {
        0..20 => 1,
        20..100 => 3,
        _ => 10,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_from_one_to_ten_milliseconds() {
        let delays: Vec<_> = (0..200).map(delay).collect();
        assert!(delays.is_sorted());
        assert_eq!((delays[0].as_millis(), delays[199].as_millis()), (1, 10));
    }

    #[test]
    fn a_writer_waits_five_seconds_in_total() {
        let total: Duration = (0..MAX_TRIES).map(delay).sum();
        assert_eq!(total, Duration::from_secs(5));
    }
}
