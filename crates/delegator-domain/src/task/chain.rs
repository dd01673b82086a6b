//! Chains, tasks that follow each other, and the end of a group or a chain as a whole.
//!
//! A follower starts after its predecessor has ended with the outcome that the follower names. A cancelled
//! task has no outcome, so the rest of its chain never starts.
//!
//! A chain ended like the last task that it ran; if several of its branches ran, like the worst of them. A
//! group ended as completed if one of its attempts, with the tasks that follow it, did; otherwise like the
//! worst of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::end::{EndKind, TaskEnd, Verification};
use super::id::TaskId;
use super::lifecycle::State;
use crate::named_enum::named_enum;

/// The depth of a chain: the number of tasks that start one after the other.
pub const MAX_CHAIN_DEPTH: usize = 8;
/// All tasks of a chain, including those that never start.
pub const MAX_CHAIN_TASKS: usize = 16;

named_enum! {
    /// How a task ended, as far as its followers are concerned.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ChainOutcome {
        Success = "success",
        Failure = "failure",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follows {
    pub task: TaskId,
    pub on: ChainOutcome,
}

impl ChainOutcome {
    /// Success is a completed task whose work was verified if it has a verify command (`verification`).
    /// `None` if the task was cancelled.
    pub fn of(end: &TaskEnd, verification: Option<Verification>) -> Option<ChainOutcome> {
        match end {
            TaskEnd::Cancelled { .. } => None,
            TaskEnd::Completed if verification.is_none_or(|check| check == Verification::Verified) => {
                Some(ChainOutcome::Success)
            }
            TaskEnd::Completed | TaskEnd::Failed { .. } | TaskEnd::Timeout(_) => Some(ChainOutcome::Failure),
        }
    }
}

impl Follows {
    /// Why the task never starts, if its predecessor ended like this.
    pub fn obstacle(&self, end: &TaskEnd, verification: Option<Verification>) -> Option<String> {
        let outcome = ChainOutcome::of(end, verification);
        if outcome == Some(self.on) {
            return None;
        }
        let predecessor = &self.task;
        let ended = match (end, outcome) {
            (TaskEnd::Cancelled { .. }, _) => return Some(format!("{predecessor} was cancelled")),
            (TaskEnd::Completed, Some(ChainOutcome::Failure)) => "completed and was not verified",
            (TaskEnd::Completed, _) => "completed",
            (TaskEnd::Timeout(_), _) => "exceeded a time limit",
            (TaskEnd::Failed { .. }, _) => "failed",
        };
        Some(format!("{predecessor} {ended}, and this task follows its {}", self.on.name()))
    }
}

/// A task of a group or a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub id: TaskId,
    pub follows: Option<TaskId>,
    /// `None`: it has not ended.
    pub end: Option<EndKind>,
    /// It never started, because its predecessor ended differently.
    pub is_skipped: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct EndCounts {
    pub completed: usize,
    #[serde(skip_serializing_if = "is_zero")]
    pub verify_failed: usize,
    pub failed: usize,
    pub cancelled: usize,
    pub timeout: usize,
    /// Never started, because their predecessors ended differently.
    pub skipped: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl EndCounts {
    pub fn of(members: &[Member]) -> EndCounts {
        let count =
            |end| members.iter().filter(|member| !member.is_skipped && member.end == Some(end)).count();
        EndCounts {
            completed: count(EndKind::Completed),
            verify_failed: count(EndKind::VerifyFailed),
            failed: count(EndKind::Failed),
            cancelled: count(EndKind::Cancelled),
            timeout: count(EndKind::Timeout),
            skipped: members.iter().filter(|member| member.is_skipped).count(),
        }
    }
}

/// How a group or a chain ended of which all tasks have.
pub fn combined_end(members: &[Member]) -> EndKind {
    let ends = worst_of_each(members, |member| member.end.unwrap_or(EndKind::Completed));
    match ends.iter().min() {
        Some(best) if best.state() == State::Completed => *best,
        _ => ends.into_iter().max().unwrap_or(EndKind::Cancelled),
    }
}

/// For each attempt, or for the chain, the highest value of the last tasks that ran.
pub fn worst_of_each<T: Ord>(members: &[Member], value: impl Fn(&Member) -> T) -> Vec<T> {
    let ran: Vec<&Member> = members.iter().filter(|member| !member.is_skipped).collect();
    let is_last = |id: &TaskId| !ran.iter().any(|other| other.follows.as_ref() == Some(id));
    // By the first task of each attempt, or of the chain.
    let mut worst: BTreeMap<&TaskId, T> = BTreeMap::new();
    for member in ran.iter().filter(|member| is_last(&member.id)) {
        let (first, value) = (first_of_chain(&ran, member), value(member));
        if worst.get(first).is_none_or(|known| value > *known) {
            worst.insert(first, value);
        }
    }
    worst.into_values().collect()
}

/// A predecessor that is not among the tasks was deleted.
fn first_of_chain<'a>(tasks: &[&'a Member], last: &'a Member) -> &'a TaskId {
    let mut first = last;
    while let Some(before) = tasks.iter().find(|task| first.follows.as_ref() == Some(&task.id)) {
        first = before;
    }
    &first.id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{FailureKind, LimitKind, TaskLocation};

    fn failed() -> TaskEnd {
        TaskEnd::Failed { kind: FailureKind::AgentExit, message: String::new(), retry_at_ms: None }
    }

    #[test]
    fn a_task_with_a_verify_command_succeeds_only_if_it_is_verified() {
        let completed = |verification| ChainOutcome::of(&TaskEnd::Completed, verification);
        assert_eq!(completed(None), Some(ChainOutcome::Success));
        assert_eq!(completed(Some(Verification::Verified)), Some(ChainOutcome::Success));
        for check in [Verification::Refuted, Verification::SandboxFailed, Verification::Unknown] {
            assert_eq!(completed(Some(check)), Some(ChainOutcome::Failure), "{check:?}");
        }
        assert_eq!(ChainOutcome::of(&failed(), None), Some(ChainOutcome::Failure));
        assert_eq!(ChainOutcome::of(&TaskEnd::Timeout(LimitKind::Idle), None), Some(ChainOutcome::Failure));
        assert_eq!(ChainOutcome::of(&TaskEnd::Cancelled { reason: None }, None), None);
    }

    #[test]
    fn exactly_the_followers_of_another_outcome_have_an_obstacle() {
        let task = TaskId::from_random(TaskLocation::Local, [7; 16]);
        let follows = |on| Follows { task: task.clone(), on };
        let (success, failure) = (follows(ChainOutcome::Success), follows(ChainOutcome::Failure));
        assert_eq!(success.obstacle(&TaskEnd::Completed, None), None);
        let reason = failure.obstacle(&TaskEnd::Completed, None).unwrap();
        assert_eq!(reason, format!("{task} completed, and this task follows its failure"));
        let refuted = Some(Verification::Refuted);
        assert_eq!(failure.obstacle(&TaskEnd::Completed, refuted), None);
        assert!(success.obstacle(&TaskEnd::Completed, refuted).unwrap().contains("was not verified"));
        assert!(
            success.obstacle(&failed(), None).unwrap().contains("failed, and this task follows its success")
        );
        for follower in [success, failure] {
            let reason = follower.obstacle(&TaskEnd::Cancelled { reason: None }, None);
            assert_eq!(reason, Some(format!("{task} was cancelled")));
        }
    }

    fn id(number: u8) -> TaskId {
        TaskId::from_random(TaskLocation::Local, [number; 16])
    }

    fn member(number: u8, follows: Option<u8>, end: EndKind) -> Member {
        Member { id: id(number), follows: follows.map(id), end: Some(end), is_skipped: false }
    }

    fn skipped(number: u8, follows: u8) -> Member {
        Member { is_skipped: true, ..member(number, Some(follows), EndKind::Cancelled) }
    }

    #[test]
    fn a_chain_ends_like_the_last_task_that_ran() {
        use EndKind::{Cancelled, Completed, Failed, Timeout};
        let repaired = [member(1, None, Failed), skipped(2, 1), member(3, Some(1), Completed)];
        assert_eq!(combined_end(&repaired), Completed);
        let review_failed = [member(1, None, Completed), member(2, Some(1), Failed), skipped(3, 1)];
        assert_eq!(combined_end(&review_failed), Failed);
        let cancelled = [member(1, None, Cancelled), skipped(2, 1), skipped(3, 2)];
        assert_eq!(combined_end(&cancelled), Cancelled);
        let branches =
            [member(1, None, Completed), member(2, Some(1), Completed), member(3, Some(1), Timeout)];
        assert_eq!(combined_end(&branches), Timeout);
        let first_deleted = [member(2, Some(1), Completed), member(3, Some(2), Failed)];
        assert_eq!(combined_end(&first_deleted), Failed);
    }

    #[test]
    fn a_group_ends_as_completed_if_one_attempt_with_its_followers_does() {
        use EndKind::{Cancelled, Completed, Failed};
        assert_eq!(combined_end(&[member(1, None, Failed), member(2, None, Completed)]), Completed);
        assert_eq!(combined_end(&[member(1, None, Cancelled), member(2, None, Failed)]), Failed);
        let reviewed = [
            member(1, None, Completed),
            member(2, None, Completed),
            member(3, Some(1), Failed),
            member(4, Some(2), Cancelled),
        ];
        assert_eq!(combined_end(&reviewed), Failed);
    }

    #[test]
    fn a_failed_check_is_no_completed_end_unless_another_attempt_passed() {
        use EndKind::{Cancelled, Completed, VerifyFailed};
        let refuted = member(1, None, VerifyFailed);
        assert_eq!(combined_end(&[refuted.clone(), member(2, Some(1), VerifyFailed)]), VerifyFailed);
        assert_eq!(combined_end(&[refuted.clone(), member(2, Some(1), Completed)]), Completed);
        assert_eq!(combined_end(&[refuted.clone(), member(2, None, Completed)]), Completed);
        assert_eq!(combined_end(&[refuted, member(2, None, Cancelled)]), VerifyFailed);
    }

    #[test]
    fn skipped_tasks_are_not_counted_as_cancelled() {
        let members = [member(1, None, EndKind::Cancelled), skipped(2, 1), skipped(3, 2)];
        assert_eq!(EndCounts::of(&members), EndCounts { cancelled: 1, skipped: 2, ..EndCounts::default() });
    }
}
