//! How a connection waits for the write lock.
//!
//! SQLite's own waiting grows to 100 ms a step, and whoever does not sleep just then takes the lock: measured with twenty
//! writers, one in a hundred waited 130 ms and the unluckiest 0.8 s for what takes half a millisecond. Short steps give
//! everybody a fair chance.

#![expect(clippy::disallowed_methods, reason = "SQLite's lock can be tried, but not waited for")]

use std::time::{Duration, Instant};

const AT_MOST: Duration = Duration::from_secs(5);
/// Tries before time counts: a process that was stopped for a minute has not been patient.
const AT_LEAST: i32 = 100;

/// What to do while another writes: wait a little, or give up.
pub(crate) fn patience() -> impl FnMut(i32) -> bool + Send + 'static {
    let mut since = Instant::now();
    move |tries| {
        if tries == 0 {
            since = Instant::now();
        }
        if tries >= AT_LEAST && since.elapsed() >= AT_MOST {
            return false;
        }
        std::thread::sleep(step(tries));
        true
    }
}

fn step(tries: i32) -> Duration {
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
    fn it_is_quick_at_first_and_easy_on_the_machine_later() {
        let steps: Vec<_> = (0..200).map(step).collect();
        assert!(steps.is_sorted());
        assert_eq!((steps[0].as_millis(), steps[199].as_millis()), (1, 10));
    }
}
