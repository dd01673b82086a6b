//! What a worker does next. Pure functions.

use std::collections::BTreeSet;
use std::time::Duration;

/// Names an attempt: task and number.
pub(crate) type AttemptKey = (String, i32);

/// A task that the database assigns to this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) key: AttemptKey,
    pub(crate) is_running: bool,
    pub(crate) is_cancelled: bool,
}

/// What a heartbeat means for one attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reaction {
    /// The user has cancelled the task.
    Cancel(AttemptKey),
    /// The task no longer belongs to this worker.
    Lose(AttemptKey),
    /// A claim whose answer was lost: begin the attempt.
    Begin(AttemptKey),
    /// The task is running, but not here: it cannot be continued.
    GiveUp(AttemptKey),
}

/// Compares the attempts that were known before the heartbeat was sent with those that the database knows.
pub(crate) fn react(known: &BTreeSet<AttemptKey>, owned: &[Owned]) -> Vec<Reaction> {
    let is_owned = |key: &AttemptKey| owned.iter().any(|owned| owned.key == *key);
    let lost = known.iter().filter(|key| !is_owned(key)).cloned().map(Reaction::Lose);
    let others = owned.iter().filter_map(|owned| {
        let key = owned.key.clone();
        match (known.contains(&key), owned.is_running, owned.is_cancelled) {
            (true, _, true) => Some(Reaction::Cancel(key)),
            (true, _, false) => None,
            (false, true, _) => Some(Reaction::GiveUp(key)),
            (false, false, _) => Some(Reaction::Begin(key)),
        }
    });
    lost.chain(others).collect()
}

pub(crate) fn claim_count(slots: u32, busy: usize, is_paused: bool, is_draining: bool) -> u32 {
    if is_paused || is_draining { 0 } else { slots.saturating_sub(u32::try_from(busy).unwrap_or(u32::MAX)) }
}

/// Pause before the next try after this many failures in a row: 250 ms to 5 s.
pub(crate) fn back_off(failures: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(250);
    const LONGEST: Duration = Duration::from_secs(5);
    (FIRST * 2_u32.saturating_pow(failures.saturating_sub(1).min(10))).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(task: &str) -> AttemptKey {
        (task.to_owned(), 1)
    }

    fn owned(task: &str, is_running: bool, is_cancelled: bool) -> Owned {
        Owned { key: key(task), is_running, is_cancelled }
    }

    #[test]
    fn a_heartbeat_cancels_loses_begins_and_gives_up() {
        let known = BTreeSet::from([key("cancelled"), key("lost"), key("normal"), key("claimed")]);
        let owned = [
            owned("cancelled", true, true),
            owned("normal", true, false),
            owned("claimed", false, false),
            owned("unanswered claim", false, false),
            owned("gone here", true, false),
        ];
        assert_eq!(
            react(&known, &owned),
            [
                Reaction::Lose(key("lost")),
                Reaction::Cancel(key("cancelled")),
                Reaction::Begin(key("unanswered claim")),
                Reaction::GiveUp(key("gone here")),
            ]
        );
    }

    #[test]
    fn another_attempt_of_the_same_task_is_another_claim() {
        let known = BTreeSet::from([("t".to_owned(), 1)]);
        let owned = [Owned { key: ("t".to_owned(), 2), is_running: false, is_cancelled: false }];
        assert_eq!(
            react(&known, &owned),
            [Reaction::Lose(("t".to_owned(), 1)), Reaction::Begin(("t".to_owned(), 2))]
        );
    }

    #[test]
    fn only_free_slots_are_claimed() {
        assert_eq!(claim_count(4, 1, false, false), 3);
        assert_eq!(claim_count(2, 5, false, false), 0);
        assert_eq!(claim_count(4, 0, true, false), 0);
        assert_eq!(claim_count(4, 0, false, true), 0);
    }

    #[test]
    fn retries_slow_down_to_a_limit() {
        assert_eq!(back_off(1), Duration::from_millis(250));
        assert_eq!(back_off(3), Duration::from_secs(1));
        assert_eq!(back_off(u32::MAX), Duration::from_secs(5));
    }
}
