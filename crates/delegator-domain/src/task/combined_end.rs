//! The end of a group or a chain as a whole, from the ends of its tasks.
//!
//! A chain ended like the last task that it ran; if several of its branches ran, like the worst of them. A
//! group ended as completed if one of its attempts, with the tasks that follow it, did; otherwise like the
//! worst of them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::id::TaskId;
use super::lifecycle::State;

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

/// The end of all these tasks as a whole.
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
    use super::super::id::TaskLocation;
    use super::*;

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
