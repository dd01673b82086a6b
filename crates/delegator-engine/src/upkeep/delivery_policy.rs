//! Decides what follows an attempt to deliver a notification: another one later, or none; and how long
//! notifications are collected. Pure.

use std::time::Duration;

use delegator_registry::DeliveryOutcome;

/// The longest time between two attempts, without its jitter.
const LONGEST: Duration = Duration::from_secs(30 * 60);
/// Jitter: up to this part less or more.
const JITTER: f64 = 0.2;

/// Notifications that come together are one.
const COLLECT_MS: i64 = 300;

/// How often and how long a notification is tried: with the default 10 times, over about 43 minutes; and how
/// many become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryPolicy {
    /// The time after the first attempt; each further one doubles it.
    pub first_delay: Duration,
    pub max_attempts: u32,
    /// Older notifications are tried once.
    pub max_age: Duration,
    /// After a delivery, the next ones are collected for this time.
    pub merge_window: Duration,
}

impl Default for DeliveryPolicy {
    fn default() -> DeliveryPolicy {
        DeliveryPolicy {
            first_delay: Duration::from_secs(5),
            max_attempts: 10,
            max_age: Duration::from_secs(24 * 60 * 60),
            merge_window: Duration::from_secs(10),
        }
    }
}

impl DeliveryPolicy {
    pub(super) const LONGEST_DELAY_MS: i64 = 2 * LONGEST.as_millis() as i64;

    /// The time between this attempt, counted from 1, and the next. `random` is any random number.
    pub(super) fn delay_ms(&self, attempt: u32, random: u32) -> i64 {
        let doublings = attempt.saturating_sub(1);
        let delay = self.first_delay.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST);
        let factor = 1.0 - JITTER + 2.0 * JITTER * f64::from(random) / f64::from(u32::MAX);
        i64::try_from(delay.mul_f64(factor).as_millis()).unwrap_or(Self::LONGEST_DELAY_MS)
    }

    pub(super) fn merge_window_ms(&self) -> i64 {
        i64::try_from(self.merge_window.as_millis()).unwrap_or(Self::LONGEST_DELAY_MS)
    }

    /// When collected notifications are sent, of which the first was created then.
    pub(super) fn release_at_ms(&self, created_at_ms: i64, last_delivery_ms: Option<i64>) -> i64 {
        let after_last = last_delivery_ms.map_or(i64::MIN, |last_ms| last_ms + self.merge_window_ms());
        after_last.max(created_at_ms + COLLECT_MS)
    }

    /// The outcome of an attempt that failed. `next_delay_ms` was drawn with [`DeliveryPolicy::delay_ms`].
    pub(super) fn after_failure(
        &self,
        attempt: u32,
        next_delay_ms: i64,
        created_at_ms: i64,
        now_ms: i64,
        error: String,
    ) -> DeliveryOutcome {
        let age_ms = now_ms.saturating_sub(created_at_ms);
        let is_old = u128::try_from(age_ms).is_ok_and(|age_ms| age_ms >= self.max_age.as_millis());
        if attempt >= self.max_attempts || is_old {
            DeliveryOutcome::Failed { error }
        } else {
            DeliveryOutcome::Retry { at_ms: now_ms.saturating_add(next_delay_ms), error }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_vary_by_a_fifth() {
        let policy = DeliveryPolicy::default();
        let shortest: Vec<i64> = (1..=4).map(|attempt| policy.delay_ms(attempt, 0)).collect();
        let longest: Vec<i64> = (1..=4).map(|attempt| policy.delay_ms(attempt, u32::MAX)).collect();
        assert_eq!(shortest, [4_000, 8_000, 16_000, 32_000]);
        assert_eq!(longest, [6_000, 12_000, 24_000, 48_000]);
        assert!(policy.delay_ms(u32::MAX, u32::MAX) <= DeliveryPolicy::LONGEST_DELAY_MS);
        let total_ms: i64 =
            (1..policy.max_attempts).map(|attempt| policy.delay_ms(attempt, u32::MAX / 2)).sum();
        assert_eq!(total_ms / 60_000, 42, "about 43 minutes");
    }

    #[test]
    fn the_first_is_sent_at_once_and_the_next_ones_ten_seconds_later() {
        let policy = DeliveryPolicy::default();
        assert_eq!(policy.release_at_ms(5_000, None), 5_000 + COLLECT_MS);
        assert_eq!(policy.release_at_ms(7_000, Some(5_500)), 15_500);
        assert_eq!(policy.release_at_ms(15_400, Some(5_500)), 15_400 + COLLECT_MS);
    }

    #[test]
    fn attempts_and_age_are_bounded() {
        let policy = DeliveryPolicy::default();
        let after = |attempt, now_ms| policy.after_failure(attempt, 500, 1_000, now_ms, "x".to_owned());
        let (retry, failed) = (
            |at_ms| DeliveryOutcome::Retry { at_ms, error: "x".to_owned() },
            DeliveryOutcome::Failed { error: "x".to_owned() },
        );
        assert_eq!(after(1, 2_000), retry(2_500));
        assert_eq!(after(9, 2_000), retry(2_500));
        assert_eq!(after(10, 2_000), failed);
        assert_eq!(after(1, 1_000 + 86_400_000), failed);
        // The clock was set back.
        assert_eq!(after(1, 0), retry(500));
    }
}
