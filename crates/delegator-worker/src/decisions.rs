//! What a worker does next, and when a worker with free slots claims tasks. Pure: the caller provides times
//! and random numbers.
//!
//! A worker claims after a hint. Where hints arrive, its polls only make up for lost ones and are rare;
//! elsewhere polls are how it finds tasks. Every idle worker gets the hint of a queued task, and one of them
//! gets the task. So one that got nothing delays its claim after the next hint, by a random time that grows
//! with each failure: many idle workers do not all query the database for every task of a busy fleet.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use delegator_fleet::{FleetClaim, OwnedTask};

/// Names an attempt: task and number.
pub(crate) type AttemptKey = (String, i32);

pub(crate) fn key_of(claim: &FleetClaim) -> AttemptKey {
    (claim.task.clone(), claim.attempt)
}

/// What a heartbeat means for one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// The user has cancelled the task, for this reason.
    Cancel(AttemptKey, Option<String>),
    /// The task no longer belongs to this worker.
    Lose(AttemptKey),
    /// A claim whose answer was lost: begin the attempt.
    Begin(OwnedTask),
    /// The task is running, but not here: it cannot be continued.
    GiveUp(OwnedTask),
}

/// Compares the attempts that were known before the heartbeat was sent with those that the database knows.
pub(crate) fn react(known: &BTreeSet<AttemptKey>, owned: Vec<OwnedTask>) -> Vec<Reaction> {
    let owned_keys: BTreeSet<AttemptKey> = owned.iter().map(|task| key_of(&task.claim)).collect();
    let lost = known.difference(&owned_keys).cloned().map(Reaction::Lose);
    let others = owned.into_iter().filter_map(|task| {
        let key = key_of(&task.claim);
        match (known.contains(&key), task.cancel.clone()) {
            (true, Some(cancel)) => Some(Reaction::Cancel(key, cancel.reason)),
            (true, None) => None,
            (false, _) if task.is_running => Some(Reaction::GiveUp(task)),
            (false, _) => Some(Reaction::Begin(task)),
        }
    });
    lost.chain(others).collect()
}

pub(crate) fn claim_count(slots: u32, busy: usize, is_paused: bool, is_draining: bool) -> u32 {
    if is_paused || is_draining { 0 } else { slots.saturating_sub(u32::try_from(busy).unwrap_or(u32::MAX)) }
}

/// Pause before the next try after this many failures in a row: 250 ms to 5 s.
pub(crate) fn back_off(failures: u32) -> Duration {
    doubled([Duration::from_millis(250), Duration::from_secs(5)], failures)
}

/// The first delay, doubled with each count after 1, up to the longest one.
fn doubled([first, longest]: [Duration; 2], count: u32) -> Duration {
    (first * 2_u32.saturating_pow(count.saturating_sub(1).min(10))).min(longest)
}

/// Polls are this far apart, up to twice as far, while hints arrive.
const RARE_POLLS: Duration = Duration::from_secs(15);
/// The same without hints.
const FREQUENT_POLLS: Duration = Duration::from_secs(1);
/// Longest delay after a hint: for the first claim without a task, and at most.
const DELAYS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

#[derive(Debug, Default)]
pub(crate) struct ClaimPace {
    last_claim: Option<Instant>,
    /// The first hint since the last claim.
    hinted_at: Option<Instant>,
    /// How many hints in a row led to no task.
    empty_hints: u32,
    /// Between 0 and 1; another one after each claim.
    random: f64,
}

impl ClaimPace {
    /// A task was queued.
    pub(crate) fn add_hint(&mut self, now: Instant) {
        self.hinted_at = self.hinted_at.or(Some(now));
    }

    /// The next claim is due: a slot was freed, or the worker was resumed. Tasks may have been queued before.
    pub(crate) fn claim_now(&mut self) {
        self.last_claim = None;
    }

    pub(crate) fn add_claim(&mut self, now: Instant, is_empty: bool, random: f64) {
        self.empty_hints =
            if is_empty && self.hinted_at.is_some() { self.empty_hints.saturating_add(1) } else { 0 };
        (self.last_claim, self.hinted_at, self.random) = (Some(now), None, random);
    }

    pub(crate) fn due_in(&self, now: Instant, has_hints: bool) -> Duration {
        let Some(last_claim) = self.last_claim else { return Duration::ZERO };
        let interval = if has_hints { RARE_POLLS } else { FREQUENT_POLLS };
        let poll_at = last_claim + interval.mul_f64(1.0 + self.random);
        let hinted_at = self.hinted_at.map(|at| at + longest_delay(self.empty_hints).mul_f64(self.random));
        hinted_at.map_or(poll_at, |at| at.min(poll_at)).saturating_duration_since(now)
    }
}

fn longest_delay(empty_hints: u32) -> Duration {
    if empty_hints == 0 { Duration::ZERO } else { doubled(DELAYS, empty_hints) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use delegator_domain::task::Mode;
    use delegator_fleet::{FleetCancelRequest, SessionId, TaskSpec};

    use super::*;

    fn key(task: &str) -> AttemptKey {
        (task.to_owned(), 1)
    }

    fn owned(task: &str, is_running: bool, is_cancelled: bool) -> OwnedTask {
        let spec = TaskSpec {
            environment: "e".to_owned(),
            repo_url: "/r".to_owned(),
            branch: None,
            setup: None,
            mode: Mode::ReadOnly,
            push: false,
            text: String::new(),
            title: String::new(),
            labels: BTreeMap::new(),
            submitter_task: None,
        };
        let claim = FleetClaim { task: task.to_owned(), attempt: 1, session: SessionId::random() };
        let cancel = is_cancelled.then(|| FleetCancelRequest { reason: Some("enough".to_owned()) });
        OwnedTask { claim, spec, is_running, cancel }
    }

    #[test]
    fn a_heartbeat_cancels_loses_begins_and_gives_up() {
        let known = BTreeSet::from([key("cancelled"), key("lost"), key("normal"), key("claimed")]);
        let (unanswered, gone) = (owned("unanswered claim", false, false), owned("gone here", true, false));
        let owned = vec![
            owned("cancelled", true, true),
            owned("normal", true, false),
            owned("claimed", false, false),
            unanswered.clone(),
            gone.clone(),
        ];
        assert_eq!(
            react(&known, owned),
            [
                Reaction::Lose(key("lost")),
                Reaction::Cancel(key("cancelled"), Some("enough".to_owned())),
                Reaction::Begin(unanswered),
                Reaction::GiveUp(gone),
            ]
        );
    }

    #[test]
    fn another_attempt_of_the_same_task_is_another_claim() {
        let mut second = owned("t", false, false);
        second.claim.attempt = 2;
        let reactions = react(&BTreeSet::from([key("t")]), vec![second.clone()]);
        assert_eq!(reactions, [Reaction::Lose(key("t")), Reaction::Begin(second)]);
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

    const SECOND: Duration = Duration::from_secs(1);

    /// A pace after this many hints that led to no task, and the time of the last claim.
    fn after_empty_hints(count: u32, random: f64) -> (ClaimPace, Instant) {
        let (mut pace, now) = (ClaimPace::default(), Instant::now());
        for _ in 0..count {
            pace.add_hint(now);
            pace.add_claim(now, true, random);
        }
        (pace, now)
    }

    #[test]
    fn polls_are_rare_while_hints_arrive_and_frequent_without_them() {
        let (mut pace, now) = (ClaimPace::default(), Instant::now());
        assert_eq!(pace.due_in(now, true), Duration::ZERO, "the first claim");
        for (random, rare, frequent) in [(0.0, 15.0, 1.0), (0.5, 22.5, 1.5), (1.0, 30.0, 2.0)] {
            pace.add_claim(now, true, random);
            assert_eq!(pace.due_in(now, true), SECOND.mul_f64(rare));
            // Also if the hints stop after the claim.
            assert_eq!(pace.due_in(now, false), SECOND.mul_f64(frequent));
            assert_eq!(pace.due_in(now + 30 * SECOND, true), Duration::ZERO);
        }
    }

    #[test]
    fn a_hint_and_a_free_slot_lead_to_a_claim_at_once() {
        let (mut pace, now) = (ClaimPace::default(), Instant::now());
        pace.add_claim(now, false, 0.5);
        pace.add_hint(now);
        assert_eq!(pace.due_in(now, true), Duration::ZERO);
        let (mut pace, now) = after_empty_hints(9, 0.5);
        pace.claim_now();
        assert_eq!(pace.due_in(now, true), Duration::ZERO);
    }

    #[test]
    fn workers_that_get_nothing_delay_their_claims_more_and_more() {
        for (count, delay) in [(1, 50), (2, 100), (5, 800), (9, 2_500), (u32::from(u16::MAX), 2_500)] {
            let (mut pace, now) = after_empty_hints(count, 0.5);
            pace.add_hint(now + SECOND);
            pace.add_hint(now + 2 * SECOND);
            assert_eq!(pace.due_in(now + SECOND, true), Duration::from_millis(delay), "{count}");
            // Never later than the next poll.
            assert!(pace.due_in(now, false) <= 2 * SECOND);
            // A claim with a task, or a poll without a hint, ends that.
            pace.add_claim(now, count % 2 == 0, 0.5);
            pace.add_claim(now, true, 0.5);
            pace.add_hint(now);
            assert_eq!(pace.due_in(now, true), Duration::ZERO);
        }
    }
}
