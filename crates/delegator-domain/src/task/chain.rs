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

use super::end::{TaskEnd, Verification};
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedMember {
    pub id: TaskId,
    pub follows: Option<TaskId>,
    pub state: State,
    /// It never started, because its predecessor ended differently.
    pub is_skipped: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct EndCounts {
    pub completed: usize,
    pub failed: usize,
    pub cancelled: usize,
    pub timeout: usize,
    /// Never started, because their predecessors ended differently.
    pub skipped: usize,
}

impl EndCounts {
    pub fn of(members: &[EndedMember]) -> EndCounts {
        let count =
            |state| members.iter().filter(|member| !member.is_skipped && member.state == state).count();
        EndCounts {
            completed: count(State::Completed),
            failed: count(State::Failed),
            cancelled: count(State::Cancelled),
            timeout: count(State::Timeout),
            skipped: members.iter().filter(|member| member.is_skipped).count(),
        }
    }
}

pub fn combined_end(members: &[EndedMember]) -> State {
    let ran: Vec<&EndedMember> = members.iter().filter(|member| !member.is_skipped).collect();
    let is_last = |id: &TaskId| !ran.iter().any(|other| other.follows.as_ref() == Some(id));
    // The first task of each attempt, or of the chain, with the worst end of its branches.
    let mut ends: BTreeMap<&TaskId, State> = BTreeMap::new();
    for member in ran.iter().filter(|member| is_last(&member.id)) {
        let end = ends.entry(first_of_chain(&ran, member)).or_insert(State::Completed);
        *end = worse(*end, member.state);
    }
    if ends.values().any(|end| *end == State::Completed) {
        return State::Completed;
    }
    ends.into_values().reduce(worse).unwrap_or(State::Cancelled)
}

/// A predecessor that is not among the tasks was deleted.
fn first_of_chain<'a>(tasks: &[&'a EndedMember], last: &'a EndedMember) -> &'a TaskId {
    let mut first = last;
    while let Some(before) = tasks.iter().find(|task| first.follows.as_ref() == Some(&task.id)) {
        first = before;
    }
    &first.id
}

fn worse(one: State, other: State) -> State {
    let severity = |state| match state {
        State::Failed => 3,
        State::Timeout => 2,
        State::Cancelled => 1,
        State::Queued | State::Starting | State::Working | State::Completed => 0,
    };
    if severity(other) > severity(one) { other } else { one }
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

    fn member(number: u8, follows: Option<u8>, state: State) -> EndedMember {
        EndedMember { id: id(number), follows: follows.map(id), state, is_skipped: false }
    }

    fn skipped(number: u8, follows: u8) -> EndedMember {
        EndedMember { is_skipped: true, ..member(number, Some(follows), State::Cancelled) }
    }

    #[test]
    fn a_chain_ends_like_the_last_task_that_ran() {
        use State::{Cancelled, Completed, Failed, Timeout};
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
        use State::{Cancelled, Completed, Failed};
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
    fn skipped_tasks_are_not_counted_as_cancelled() {
        let members = [member(1, None, State::Cancelled), skipped(2, 1), skipped(3, 2)];
        assert_eq!(EndCounts::of(&members), EndCounts { cancelled: 1, skipped: 2, ..EndCounts::default() });
    }
}
