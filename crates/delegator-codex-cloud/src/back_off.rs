//! How long to wait between two polls of a hosted task.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(5);
/// The longest interval without its jitter.
const LONGEST: Duration = Duration::from_secs(48);

/// The interval after this number of polls: 5 s, doubled by each poll, and up to a quarter more, so that
/// clients that started together do not poll together. Never longer than 60 s. `random` is any random number.
pub fn back_off(polls: u32, random: u32) -> Duration {
    let interval = FIRST.saturating_mul(2_u32.saturating_pow(polls)).min(LONGEST);
    interval + interval.mul_f64(0.25 * f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_from_5_to_60_seconds() {
        let shortest: Vec<u64> = (0..6).map(|polls| back_off(polls, 0).as_secs()).collect();
        assert_eq!(shortest, [5, 10, 20, 40, 48, 48]);
        let longest: Vec<f64> = (0..6).map(|polls| back_off(polls, u32::MAX).as_secs_f64()).collect();
        assert_eq!(longest, [6.25, 12.5, 25.0, 50.0, 60.0, 60.0]);
        assert_eq!(back_off(u32::MAX, u32::MAX), Duration::from_secs(60));
    }
}
