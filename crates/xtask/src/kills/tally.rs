//! Counts violations, from the facts about every task. Pure.

use std::collections::BTreeSet;

use delegator_domain::task::{FailureKind, TaskEnd};

use crate::event_numbers::EventNumbers;

/// What is known about a task at the end.
#[derive(Debug, Clone)]
pub(super) struct TaskFacts {
    pub(super) id: String,
    /// The key it was submitted under.
    pub(super) key: String,
    /// Whether the registry has it.
    pub(super) known: bool,
    pub(super) starts: usize,
    pub(super) end: Option<TaskEnd>,
    pub(super) supervisor_killed: bool,
    pub(super) stored: EventNumbers,
}

impl TaskFacts {
    /// A task that was acknowledged and that the registry does not have.
    pub(super) fn unknown(id: &str) -> TaskFacts {
        TaskFacts {
            id: id.to_owned(),
            key: id.to_owned(),
            known: false,
            starts: 0,
            end: None,
            supervisor_killed: false,
            stored: EventNumbers::default(),
        }
    }

    fn failure(&self) -> Option<FailureKind> {
        match &self.end {
            Some(TaskEnd::Failed { kind, .. }) => Some(*kind),
            _ => None,
        }
    }

    fn is_lost_visibly(&self) -> bool {
        matches!(self.failure(), Some(FailureKind::SupervisorLost | FailureKind::SupervisorStartFailed))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) completed: usize,
    pub(super) cancelled: usize,
    pub(super) lost_visibly: usize,
    pub(super) acknowledged_but_lost: usize,
    pub(super) started_twice: usize,
    pub(super) two_for_one_key: usize,
    pub(super) never_started: usize,
    pub(super) lost_without_a_kill: usize,
    pub(super) ended_otherwise: usize,
    pub(super) events_missing: usize,
    pub(super) events_duplicated: usize,
}

impl Tally {
    pub(super) fn of(tasks: &[TaskFacts], events: u64) -> Tally {
        let count =
            |predicate: &dyn Fn(&TaskFacts) -> bool| tasks.iter().filter(|task| predicate(task)).count();
        let completed = |task: &TaskFacts| task.end == Some(TaskEnd::Completed);
        let cancelled = |task: &TaskFacts| matches!(task.end, Some(TaskEnd::Cancelled { .. }));
        let keys: BTreeSet<&str> = tasks.iter().map(|task| task.key.as_str()).collect();
        // An agent that was stopped leaves a prefix; one that completed leaves everything.
        let missing = |task: &TaskFacts| {
            if completed(task) { task.stored.missing_up_to(events) } else { task.stored.gaps() }
        };
        Tally {
            completed: count(&completed),
            cancelled: count(&cancelled),
            lost_visibly: count(&TaskFacts::is_lost_visibly),
            acknowledged_but_lost: count(&|task| !task.known || task.end.is_none()),
            started_twice: count(&|task| task.starts > 1),
            two_for_one_key: tasks.len() - keys.len(),
            never_started: count(&|task| {
                task.known && task.starts == 0 && !cancelled(task) && !task.is_lost_visibly()
            }),
            lost_without_a_kill: count(&|task| task.is_lost_visibly() && !task.supervisor_killed),
            ended_otherwise: count(&|task| {
                task.end.is_some() && !completed(task) && !cancelled(task) && !task.is_lost_visibly()
            }),
            events_missing: tasks.iter().map(missing).sum(),
            events_duplicated: tasks.iter().map(|task| task.stored.duplicates).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(id: &str, stored: usize) -> TaskFacts {
        TaskFacts {
            known: true,
            starts: 1,
            end: Some(TaskEnd::Completed),
            stored: EventNumbers { distinct: stored, last: stored as u64, ..EventNumbers::default() },
            ..TaskFacts::unknown(id)
        }
    }

    fn lost(id: &str) -> TaskFacts {
        let end =
            TaskEnd::Failed { kind: FailureKind::SupervisorLost, message: String::new(), retry_at_ms: None };
        TaskFacts { end: Some(end), starts: 0, supervisor_killed: true, ..completed(id, 0) }
    }

    #[test]
    fn recorded_loss_is_not_a_violation() {
        let tally = Tally::of(&[completed("a", 3), lost("b")], 3);
        assert_eq!(tally, Tally { completed: 1, lost_visibly: 1, ..Tally::default() });
    }

    #[test]
    fn every_violation_is_counted() {
        let twice = TaskFacts { starts: 2, ..completed("a", 2) };
        let wrongly = TaskFacts { supervisor_killed: false, ..lost("b") };
        let never = TaskFacts { starts: 0, ..completed("c", 3) };
        let same_key = TaskFacts { key: "c".to_owned(), ..completed("d", 3) };
        let open = TaskFacts { end: None, ..completed("e", 3) };
        let tally = Tally::of(&[twice, wrongly, never, same_key, open, TaskFacts::unknown("f")], 3);
        assert_eq!((tally.started_twice, tally.lost_without_a_kill, tally.never_started), (1, 1, 1));
        assert_eq!((tally.two_for_one_key, tally.acknowledged_but_lost, tally.events_missing), (1, 2, 1));
    }

    #[test]
    fn stopped_agent_may_store_a_prefix_without_gaps() {
        let stopped = TaskFacts { end: Some(TaskEnd::Cancelled { reason: None }), ..completed("a", 2) };
        assert_eq!(Tally::of(std::slice::from_ref(&stopped), 30).events_missing, 0);
        let gap =
            TaskFacts { stored: EventNumbers { distinct: 2, last: 3, ..EventNumbers::default() }, ..stopped };
        assert_eq!(Tally::of(&[gap], 30).events_missing, 1);
    }
}
