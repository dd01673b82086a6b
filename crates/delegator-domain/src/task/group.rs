//! Groups: several attempts at one task, each in a worktree of its own, and the rule that recommends one of
//! them.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use super::end::Verification;
use super::id::{IdError, is_random_part, random_part, read_random_part};

pub const MAX_ATTEMPTS: u8 = 4;

const PREFIX: &str = "G-local-";

/// `G-local-` and 10 characters, as in a task id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(String);

impl GroupId {
    pub fn from_random(bytes: [u8; 16]) -> GroupId {
        GroupId(format!("{PREFIX}{}", random_part(bytes)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The beginning of the ids that a person may mean; `None` if it is not one of a group id.
    pub fn beginning(given: &str) -> Option<String> {
        let lower = given.to_ascii_lowercase();
        let random = read_random_part(lower.strip_prefix(&PREFIX.to_ascii_lowercase())?)?;
        Some(format!("{PREFIX}{random}"))
    }
}

impl FromStr for GroupId {
    type Err = IdError;

    fn from_str(given: &str) -> Result<GroupId, IdError> {
        let is_id = given.strip_prefix(PREFIX).is_some_and(is_random_part);
        if is_id { Ok(GroupId(given.to_owned())) } else { Err(IdError { given: given.to_owned() }) }
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    pub group: GroupId,
    /// From 1.
    pub attempt: u8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestCounts {
    pub passed: u64,
    pub failed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedAttempt {
    pub attempt: u8,
    pub is_completed: bool,
    pub verification: Option<Verification>,
    /// Those of the verify command, else those that the agent ran.
    pub tests: TestCounts,
    /// Added and deleted lines; `None` if unknown.
    pub changed_lines: Option<u64>,
}

impl RankedAttempt {
    fn is_verified(&self) -> bool {
        self.is_completed && self.verification == Some(Verification::Verified)
    }

    /// An attempt without changes comes last, because it did not do the task.
    fn size(&self) -> u64 {
        self.changed_lines.filter(|lines| *lines > 0).unwrap_or(u64::MAX)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recommendation {
    pub attempt: Option<u8>,
    pub reason: String,
}

/// Recommends an attempt: verified ones first, then completed ones; among these the one with the fewest
/// failed tests, then the most passed tests, then the smallest change, then the first.
pub fn recommend(attempts: &[RankedAttempt]) -> Recommendation {
    let completed: Vec<RankedAttempt> = attempts.iter().filter(|it| it.is_completed).copied().collect();
    let verified: Vec<RankedAttempt> = completed.iter().filter(|it| it.is_verified()).copied().collect();
    let has_verify = attempts.iter().any(|it| it.verification.is_some());
    let mut candidates = if verified.is_empty() { completed } else { verified.clone() };
    candidates.sort_by_key(|it| (it.tests.failed, Reverse(it.tests.passed), it.size(), it.attempt));
    let Some(best) = candidates.first() else {
        return Recommendation { attempt: None, reason: "no attempt completed".to_owned() };
    };
    let number = best.attempt;
    let reason = match (candidates.get(1), verified.is_empty()) {
        (None, false) => format!("only attempt {number} passed verify"),
        (None, true) if has_verify => format!("no attempt passed verify; only attempt {number} completed"),
        (None, true) => format!("only attempt {number} completed"),
        (Some(next), is_unverified) => {
            let count = candidates.len();
            let class = match (is_unverified, has_verify) {
                (false, _) => format!("{count} attempts passed verify"),
                (true, true) => format!("no attempt passed verify, {count} completed"),
                (true, false) => format!("{count} attempts completed"),
            };
            format!("{class}; {}", advantage(best, next))
        }
    };
    Recommendation { attempt: Some(number), reason }
}

/// What the best attempt has that the next one has not.
fn advantage(best: &RankedAttempt, next: &RankedAttempt) -> String {
    let number = best.attempt;
    if best.tests.failed != next.tests.failed {
        format!("attempt {number} has the fewest failed tests ({})", best.tests.failed)
    } else if best.tests.passed != next.tests.passed {
        format!("attempt {number} has the most passed tests ({})", best.tests.passed)
    } else if best.size() != next.size() {
        format!("attempt {number} has the smallest change ({} lines)", best.size())
    } else {
        format!("attempt {number} is the first of equal ones")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(attempt: u8) -> RankedAttempt {
        RankedAttempt {
            attempt,
            is_completed: true,
            verification: None,
            tests: TestCounts::default(),
            changed_lines: Some(10),
        }
    }

    fn verified(attempt: u8, outcome: Verification) -> RankedAttempt {
        RankedAttempt { verification: Some(outcome), ..facts(attempt) }
    }

    fn tested(attempt: u8, passed: u64, failed: u64) -> RankedAttempt {
        RankedAttempt { tests: TestCounts { passed, failed }, ..facts(attempt) }
    }

    fn failed(attempt: u8) -> RankedAttempt {
        RankedAttempt { is_completed: false, verification: Some(Verification::AgentFailed), ..facts(attempt) }
    }

    fn assert_recommended(attempts: &[RankedAttempt], attempt: Option<u8>, reason: &str) {
        assert_eq!(recommend(attempts), Recommendation { attempt, reason: reason.to_owned() });
    }

    #[test]
    fn a_verified_attempt_comes_first() {
        let refuted = |attempt| RankedAttempt {
            tests: TestCounts { passed: 9, failed: 0 },
            changed_lines: Some(1),
            ..verified(attempt, Verification::Refuted)
        };
        let good = verified(2, Verification::Verified);
        assert_recommended(&[refuted(1), good, refuted(3)], Some(2), "only attempt 2 passed verify");
    }

    #[test]
    fn a_completed_attempt_comes_before_a_failed_one() {
        let plain_failure = RankedAttempt { verification: None, ..failed(1) };
        assert_recommended(&[plain_failure, facts(2)], Some(2), "only attempt 2 completed");
        let refuted = verified(2, Verification::Refuted);
        let reason = "no attempt passed verify; only attempt 2 completed";
        assert_recommended(&[failed(1), refuted], Some(2), reason);
    }

    #[test]
    fn nothing_is_recommended_if_none_completed() {
        assert_recommended(&[failed(1), failed(2)], None, "no attempt completed");
        assert_recommended(&[], None, "no attempt completed");
    }

    #[test]
    fn tests_decide_among_equally_verified_attempts() {
        let reason = "3 attempts completed; attempt 3 has the fewest failed tests (0)";
        assert_recommended(&[tested(1, 9, 1), tested(2, 9, 2), tested(3, 3, 0)], Some(3), reason);
        let reason = "2 attempts completed; attempt 2 has the most passed tests (5)";
        assert_recommended(&[tested(1, 3, 0), tested(2, 5, 0)], Some(2), reason);
    }

    #[test]
    fn the_smaller_change_decides_next_and_an_empty_one_loses() {
        let changed = |attempt, lines| RankedAttempt {
            changed_lines: lines,
            ..verified(attempt, Verification::Verified)
        };
        let attempts = [changed(1, Some(0)), changed(2, Some(7)), changed(3, Some(5)), changed(4, None)];
        let reason = "4 attempts passed verify; attempt 3 has the smallest change (5 lines)";
        assert_recommended(&attempts, Some(3), reason);
    }

    #[test]
    fn the_first_of_equal_attempts_is_recommended() {
        let reason = "2 attempts completed; attempt 1 is the first of equal ones";
        assert_recommended(&[facts(2), facts(1)], Some(1), reason);
    }

    #[test]
    fn group_ids_round_trip_and_have_beginnings() {
        let id = GroupId::from_random([0xab; 16]);
        assert_eq!(id.as_str().parse::<GroupId>().unwrap(), id);
        for given in ["", "G-local-", "T-local-0000000000", "G-cloud-0000000000", "G-local-../../aaaa"] {
            assert!(given.parse::<GroupId>().is_err(), "{given}");
        }
        assert_eq!(GroupId::beginning("g-local-7Q3l").as_deref(), Some("G-local-7q31"));
        assert_eq!(GroupId::beginning("7q3k"), None);
        assert_eq!(GroupId::beginning("G-local-7q3"), None);
    }
}
