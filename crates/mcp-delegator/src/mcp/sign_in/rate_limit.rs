//! A limit for what a browser may do in a short time: a burst, then a steady rate.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct RateLimit {
    burst: f64,
    interval: Duration,
    /// How many may follow at once, and since when this is so.
    left: Mutex<(f64, Instant)>,
}

impl RateLimit {
    /// `burst` at once, and one more after each `interval`.
    pub fn new(burst: u32, interval: Duration) -> RateLimit {
        let burst = f64::from(burst);
        RateLimit { burst, interval, left: Mutex::new((burst, Instant::now())) }
    }

    /// Whether one more is permitted now.
    pub fn admit(&self) -> bool {
        self.admit_at(Instant::now())
    }

    fn admit_at(&self, now: Instant) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = now.saturating_duration_since(left.1);
        let available = (left.0 + elapsed.as_secs_f64() / self.interval.as_secs_f64()).min(self.burst);
        let is_admitted = available >= 1.0;
        *left = (if is_admitted { available - 1.0 } else { available }, now);
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_burst_the_rate_is_steady() {
        let limit = RateLimit::new(2, Duration::from_secs(10));
        let start = Instant::now();
        let admitted = |seconds| limit.admit_at(start + Duration::from_secs(seconds));
        let results = [0, 0, 0, 5, 10, 10, 15, 20, 1000, 1000, 1000].map(admitted);
        assert_eq!(results, [true, true, false, false, true, false, false, true, true, true, false]);
    }
}
