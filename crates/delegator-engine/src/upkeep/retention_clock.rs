//! Decides whether the wall clock can be trusted for deleting by age. Pure.
//!
//! A wall clock that is set forward makes everything look old. The boot clock cannot be set, so within one
//! boot a change of the difference between the two reveals a jump. Across boots there is only the wall clock:
//! a time more than a day after the last trusted one is trusted only after it has run consistently for a
//! while. A jump within one boot blocks deletion until the clock is back or a day of uptime has confirmed it.

use serde::{Deserialize, Serialize};

const MINUTE_MS: i64 = 60 * 1000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
/// Slightly less than the hour between two passes, so that the next pass confirms.
const AFTER_BOOT_MS: i64 = 50 * MINUTE_MS;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) boot_id: String,
    /// Since boot, suspended time included.
    pub(crate) boot_ms: i64,
    pub(crate) wall_ms: i64,
}

impl Reading {
    fn offset_ms(&self) -> i64 {
        self.wall_ms - self.boot_ms
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockRecord {
    /// The last reading that was trusted; within one boot the first, so that small steps do not add up to a
    /// jump.
    pub(crate) trusted: Option<Reading>,
    /// Since when a doubted clock has run without a jump.
    pub(crate) steady_since: Option<Reading>,
    /// Uptime after which a doubted clock is trusted.
    pub(crate) needed_ms: i64,
}

impl ClockRecord {
    pub(crate) fn trusting(now: Reading) -> ClockRecord {
        ClockRecord { trusted: Some(now), steady_since: None, needed_ms: 0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockVerdict {
    Trusted,
    /// Neither contradicted nor confirmed yet: the first pass, or the first after a long pause.
    Unconfirmed,
    /// The wall clock moved by this much against the boot clock.
    Jumped {
        by_ms: i64,
    },
}

pub(crate) fn judge(before: Option<&ClockRecord>, now: Reading) -> (ClockVerdict, ClockRecord) {
    let trusted = before.and_then(|before| before.trusted.as_ref());
    if let Some(trusted) = trusted.filter(|trusted| is_consistent(trusted, &now)) {
        let reference = if trusted.boot_id == now.boot_id { trusted.clone() } else { now };
        return (ClockVerdict::Trusted, ClockRecord::trusting(reference));
    }
    let steady_since = before.and_then(|before| before.steady_since.as_ref());
    let earlier = [trusted, steady_since].into_iter().flatten();
    let of_this_boot = |reading: &&Reading| reading.boot_id == now.boot_id;
    let jumped_from = earlier.clone().filter(of_this_boot).find(|reading| !is_consistent(reading, &now));
    let needed_ms = before.map_or(0, |before| before.needed_ms).max(AFTER_BOOT_MS);
    let needed_ms = if jumped_from.is_some() { DAY_MS } else { needed_ms };
    let steady_since = steady_since.filter(of_this_boot).filter(|reading| is_consistent(reading, &now));
    if steady_since.is_some_and(|since| now.boot_ms - since.boot_ms >= needed_ms) {
        return (ClockVerdict::Trusted, ClockRecord::trusting(now));
    }
    let verdict = if needed_ms == DAY_MS {
        let from = jumped_from.or(earlier.clone().next()).unwrap_or(&now);
        ClockVerdict::Jumped { by_ms: now.offset_ms() - from.offset_ms() }
    } else {
        ClockVerdict::Unconfirmed
    };
    let (trusted, steady_since) = (trusted.cloned(), steady_since.cloned());
    (verdict, ClockRecord { trusted, steady_since: Some(steady_since.unwrap_or(now)), needed_ms })
}

/// Whether the clock got from `earlier` to `now` without a jump of more than a day.
fn is_consistent(earlier: &Reading, now: &Reading) -> bool {
    if earlier.boot_id == now.boot_id {
        (now.offset_ms() - earlier.offset_ms()).abs() <= DAY_MS
    } else {
        (0..=DAY_MS).contains(&(now.wall_ms - earlier.wall_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 60 * MINUTE_MS;
    const START: i64 = 1_800_000_000_000;

    fn at(boot: &str, boot_ms: i64, wall_ms: i64) -> Reading {
        Reading { boot_id: boot.to_owned(), boot_ms, wall_ms: START + wall_ms }
    }

    /// The verdicts of consecutive passes.
    fn verdicts(readings: impl IntoIterator<Item = Reading>) -> Vec<ClockVerdict> {
        let mut record = None;
        readings
            .into_iter()
            .map(|now| {
                let (verdict, next) = judge(record.as_ref(), now);
                record = Some(next);
                verdict
            })
            .collect()
    }

    #[test]
    fn the_first_pass_only_records_and_the_second_trusts() {
        let passes = [at("a", 0, 0), at("a", HOUR_MS, HOUR_MS), at("a", 2 * HOUR_MS, 2 * HOUR_MS)];
        assert_eq!(
            verdicts(passes),
            [ClockVerdict::Unconfirmed, ClockVerdict::Trusted, ClockVerdict::Trusted]
        );
        let too_soon = [at("a", 0, 0), at("a", MINUTE_MS, MINUTE_MS)];
        assert_eq!(verdicts(too_soon), [ClockVerdict::Unconfirmed; 2]);
    }

    #[test]
    fn a_jump_blocks_until_the_clock_is_back() {
        let by_ms = 60 * DAY_MS;
        let passes = [
            at("a", 0, 0),
            at("a", HOUR_MS, HOUR_MS),
            at("a", 2 * HOUR_MS, 2 * HOUR_MS + by_ms),
            at("a", 3 * HOUR_MS, 3 * HOUR_MS + by_ms),
            at("a", 4 * HOUR_MS, 4 * HOUR_MS),
        ];
        let jumped = ClockVerdict::Jumped { by_ms };
        assert_eq!(verdicts(passes)[1..], [ClockVerdict::Trusted, jumped, jumped, ClockVerdict::Trusted]);
    }

    #[test]
    fn a_day_of_uptime_confirms_a_clock_that_was_set() {
        let (by_ms, hours) = (60 * DAY_MS, 30);
        let before = [at("a", 0, 0), at("a", HOUR_MS, HOUR_MS)];
        let after = (2..2 + hours).map(|hour| at("a", hour * HOUR_MS, hour * HOUR_MS + by_ms));
        let all = verdicts(before.into_iter().chain(after));
        let first = all.iter().rposition(|verdict| *verdict != ClockVerdict::Trusted).unwrap() + 1;
        assert_eq!(first, 2 + 24, "{all:?}");
    }

    #[test]
    fn small_steps_that_add_up_to_a_jump_block_deletion() {
        let passes = (0..6).map(|hour| at("a", hour * HOUR_MS, hour * HOUR_MS + hour * 20 * HOUR_MS));
        assert!(verdicts(passes).iter().skip(4).all(|verdict| *verdict != ClockVerdict::Trusted));
    }

    #[test]
    fn a_jump_before_anything_was_trusted_blocks_too() {
        let passes = [at("a", 0, 0), at("a", HOUR_MS, HOUR_MS + 60 * DAY_MS)];
        assert_eq!(verdicts(passes)[1], ClockVerdict::Jumped { by_ms: 60 * DAY_MS });
    }

    #[test]
    fn a_short_reboot_changes_nothing() {
        let passes = [at("a", 0, 0), at("a", HOUR_MS, HOUR_MS), at("b", 0, 3 * HOUR_MS)];
        assert_eq!(verdicts(passes)[2], ClockVerdict::Trusted);
    }

    #[test]
    fn a_machine_that_was_off_for_two_weeks_is_cleaned_an_hour_later() {
        let passes = [
            at("a", 0, 0),
            at("a", HOUR_MS, HOUR_MS),
            at("b", 0, 14 * DAY_MS),
            at("b", HOUR_MS, 14 * DAY_MS + HOUR_MS),
        ];
        assert_eq!(verdicts(passes)[2..], [ClockVerdict::Unconfirmed, ClockVerdict::Trusted]);
    }

    #[test]
    fn a_reboot_does_not_end_the_doubt_about_a_jump() {
        let by_ms = 60 * DAY_MS;
        let passes = [
            at("a", 0, 0),
            at("a", HOUR_MS, HOUR_MS),
            at("a", 2 * HOUR_MS, 2 * HOUR_MS + by_ms),
            at("b", 0, 3 * HOUR_MS + by_ms),
            at("b", 2 * HOUR_MS, 5 * HOUR_MS + by_ms),
        ];
        let all = verdicts(passes);
        assert!(all[2..].iter().all(|verdict| matches!(verdict, ClockVerdict::Jumped { .. })), "{all:?}");
    }

    #[test]
    fn a_clock_that_is_set_back_blocks_as_well() {
        let passes = [at("a", 0, 0), at("a", HOUR_MS, HOUR_MS), at("a", 2 * HOUR_MS, -10 * DAY_MS)];
        assert!(matches!(verdicts(passes)[2], ClockVerdict::Jumped { by_ms } if by_ms < -9 * DAY_MS));
    }
}
