//! The section in which a person looks for a task, a group or a chain, decided from stored facts only.

use crate::named_enum::named_enum;
use crate::task::{FailureKind, Member, State, Verification, worst_of_each};

named_enum! {
    /// In order of urgency.
    pub enum Section {
        NeedsYou = "needs_you",
        Working = "working",
        Waiting = "waiting",
        FinishedUnread = "finished_unread",
        Finished = "finished",
    }
}

/// Why a task needs a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A question or a request for permission is open.
    Answer,
    /// A budget is used to 80 %.
    Budget,
    /// There was no activity for half of the idle limit.
    Silence,
    /// Its changes could not be applied, because they conflict with others, and the result was not read since.
    Conflict,
    /// Its check failed, and the result was not read.
    CheckFailed,
    /// The agent is not signed in any more, and the result was not read.
    SignIn,
}

/// What is known about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskFacts {
    pub state: State,
    pub has_open_question: bool,
    pub is_budget_near: bool,
    pub quiet_ms: u64,
    /// `None` if it is not known, or the task has none.
    pub idle_limit_sec: Option<u64>,
    pub verification: Option<Verification>,
    pub failure: Option<FailureKind>,
    pub has_apply_conflict: bool,
    pub is_read: bool,
    /// It never started, because its predecessor ended differently.
    pub is_skipped: bool,
}

impl TaskFacts {
    pub fn of_state(state: State) -> TaskFacts {
        TaskFacts {
            state,
            has_open_question: false,
            is_budget_near: false,
            quiet_ms: 0,
            idle_limit_sec: None,
            verification: None,
            failure: None,
            has_apply_conflict: false,
            is_read: false,
            is_skipped: false,
        }
    }

    pub fn need(&self) -> Option<Need> {
        if matches!(self.state, State::Starting | State::Working) {
            let is_silent = self.idle_limit_sec.is_some_and(|limit| self.quiet_ms >= limit * 500);
            let needs = [
                (self.has_open_question, Need::Answer),
                (self.is_budget_near, Need::Budget),
                (is_silent, Need::Silence),
            ];
            return needs.into_iter().find(|(applies, _)| *applies).map(|(_, need)| need);
        }
        let is_news = self.state.is_terminal() && !self.is_read;
        match (self.verification, self.failure) {
            _ if !is_news => None,
            _ if self.has_apply_conflict => Some(Need::Conflict),
            (_, Some(FailureKind::Auth)) => Some(Need::SignIn),
            (Some(check), _) if check.has_failed() => Some(Need::CheckFailed),
            _ => None,
        }
    }

    pub fn section(&self) -> Section {
        match self.state {
            _ if self.need().is_some() => Section::NeedsYou,
            State::Starting | State::Working => Section::Working,
            State::Queued => Section::Waiting,
            _ if self.is_read || self.is_skipped => Section::Finished,
            _ => Section::FinishedUnread,
        }
    }
}

/// The section of a group or a chain as a whole. While it has not ended, that of its most urgent live task. A
/// task that others continued, or another attempt outdid, needs no attention; but one that was chosen and could not be
/// applied does.
pub fn section_of_all(members: &[Member], standing: impl Fn(&Member) -> (Section, Option<Need>)) -> Section {
    let section = |member: &Member| standing(member).0;
    let live = members.iter().filter(|member| member.end.is_none()).map(section);
    if let Some(most_urgent) = live.min() {
        return most_urgent;
    }
    if members.iter().any(|member| standing(member).1 == Some(Need::Conflict)) {
        return Section::NeedsYou;
    }
    let ends = worst_of_each(members, |member| std::cmp::Reverse(section(member)));
    if !ends.is_empty() && ends.iter().all(|end| end.0 == Section::NeedsYou) {
        return Section::NeedsYou;
    }
    let is_unread = members.iter().any(|member| section(member) != Section::Finished);
    if is_unread { Section::FinishedUnread } else { Section::Finished }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{EndKind, TaskId, TaskLocation};

    fn facts(state: State) -> TaskFacts {
        TaskFacts::of_state(state)
    }

    #[test]
    fn the_facts_of_a_task_decide_its_section() {
        use Section::{Finished, FinishedUnread, NeedsYou, Waiting, Working};
        let working = facts(State::Working);
        let quiet = |quiet_ms, limit| TaskFacts { quiet_ms, idle_limit_sec: limit, ..working };
        let completed = facts(State::Completed);
        let checked = |outcome| TaskFacts { verification: Some(outcome), ..completed };
        let read = |facts| TaskFacts { is_read: true, ..facts };
        let failed = |kind| TaskFacts { failure: Some(kind), ..facts(State::Failed) };
        let conflicting = TaskFacts { has_apply_conflict: true, ..checked(Verification::Refuted) };
        let skipped = TaskFacts { is_skipped: true, ..facts(State::Cancelled) };
        for (facts, need, section) in [
            (facts(State::Queued), None, Waiting),
            (facts(State::Starting), None, Working),
            (working, None, Working),
            (TaskFacts { has_open_question: true, ..working }, Some(Need::Answer), NeedsYou),
            (TaskFacts { is_budget_near: true, ..working }, Some(Need::Budget), NeedsYou),
            (quiet(59_999, Some(120)), None, Working),
            (quiet(60_000, Some(120)), Some(Need::Silence), NeedsYou),
            (quiet(900_000, None), None, Working),
            (TaskFacts { has_open_question: true, ..quiet(60_000, Some(1)) }, Some(Need::Answer), NeedsYou),
            (completed, None, FinishedUnread),
            (read(completed), None, Finished),
            (checked(Verification::Verified), None, FinishedUnread),
            (checked(Verification::Refuted), Some(Need::CheckFailed), NeedsYou),
            (checked(Verification::TimedOut), Some(Need::CheckFailed), NeedsYou),
            (checked(Verification::SandboxFailed), None, FinishedUnread),
            (read(checked(Verification::Refuted)), None, Finished),
            (failed(FailureKind::Auth), Some(Need::SignIn), NeedsYou),
            (read(failed(FailureKind::Auth)), None, Finished),
            (conflicting, Some(Need::Conflict), NeedsYou),
            (read(conflicting), None, Finished),
            (failed(FailureKind::AgentExit), None, FinishedUnread),
            (facts(State::Timeout), None, FinishedUnread),
            (facts(State::Cancelled), None, FinishedUnread),
            (skipped, None, Finished),
        ] {
            assert_eq!((facts.need(), facts.section()), (need, section), "{facts:?}");
        }
    }

    #[test]
    fn the_members_decide_the_section_of_the_whole() {
        use Section::{Finished, FinishedUnread, NeedsYou, Waiting, Working};
        let id = |number: u8| TaskId::from_random(TaskLocation::Local, [number; 16]);
        // The number of the task before, and the section of a task; a group has no predecessors.
        let whole = |tasks: &[(Option<u8>, Section)]| {
            let member = |(at, (follows, section)): (usize, &(Option<u8>, Section))| {
                let is_live = matches!(section, Working | Waiting);
                let end = (!is_live).then_some(EndKind::Completed);
                let number = u8::try_from(at).unwrap();
                Member { id: id(number), follows: follows.map(id), end, is_skipped: false }
            };
            let members: Vec<Member> = tasks.iter().enumerate().map(member).collect();
            let standing = |member: &Member| {
                let at = members.iter().position(|other| other.id == member.id).unwrap();
                (tasks[at].1, (at == 9).then_some(Need::Conflict))
            };
            section_of_all(&members, standing)
        };
        for (tasks, expected) in [
            (&[(None, Working), (None, Waiting)][..], Working),
            (&[(None, FinishedUnread), (Some(0), Waiting)], Waiting),
            (&[(None, NeedsYou), (Some(0), Working)], Working),
            (&[(None, NeedsYou), (Some(0), FinishedUnread)], FinishedUnread),
            (&[(None, FinishedUnread), (Some(0), NeedsYou)], NeedsYou),
            (&[(None, NeedsYou), (None, FinishedUnread)], FinishedUnread),
            (&[(None, NeedsYou), (None, NeedsYou)], NeedsYou),
            (&[(None, Finished), (Some(0), FinishedUnread)], FinishedUnread),
            (&[(None, Finished), (None, Finished)], Finished),
            (&[], Finished),
            (&[(None, Finished); 10], NeedsYou),
        ] {
            assert_eq!(whole(tasks), expected, "{tasks:?}");
        }
    }
}
