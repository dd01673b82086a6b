//! What may not have happened, judged from what is known of every task. Pure.

use std::collections::BTreeSet;

use delegator_domain::task::{End, FailureKind};

use crate::numbered::Numbered;

/// What is known of a task when everything is over.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) id: String,
    /// What it was submitted under.
    pub(super) key: String,
    /// Whether the registry knows it.
    pub(super) known: bool,
    pub(super) starts: usize,
    pub(super) end: Option<End>,
    pub(super) supervisor_killed: bool,
    pub(super) stored: Numbered,
}

impl Life {
    /// A task that was acknowledged and that nobody knows.
    pub(super) fn unknown(id: &str) -> Life {
        Life {
            id: id.to_owned(),
            key: id.to_owned(),
            known: false,
            starts: 0,
            end: None,
            supervisor_killed: false,
            stored: Numbered::default(),
        }
    }

    fn failure(&self) -> Option<FailureKind> {
        match &self.end {
            Some(End::Failed { kind, .. }) => Some(*kind),
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
    pub(super) events_doubled: usize,
}

impl Tally {
    pub(super) fn of(lives: &[Life], events: u64) -> Tally {
        let count = |is_so: &dyn Fn(&Life) -> bool| lives.iter().filter(|life| is_so(life)).count();
        let completed = |life: &Life| life.end == Some(End::Completed);
        let cancelled = |life: &Life| matches!(life.end, Some(End::Cancelled { .. }));
        let keys: BTreeSet<&str> = lives.iter().map(|life| life.key.as_str()).collect();
        // An agent that was stopped leaves a beginning; one that completed leaves everything.
        let missing = |life: &Life| {
            if completed(life) { life.stored.missing_up_to(events) } else { life.stored.gaps() }
        };
        Tally {
            completed: count(&completed),
            cancelled: count(&cancelled),
            lost_visibly: count(&Life::is_lost_visibly),
            acknowledged_but_lost: count(&|life| !life.known || life.end.is_none()),
            started_twice: count(&|life| life.starts > 1),
            two_for_one_key: lives.len() - keys.len(),
            never_started: count(&|life| {
                life.known && life.starts == 0 && !cancelled(life) && !life.is_lost_visibly()
            }),
            lost_without_a_kill: count(&|life| life.is_lost_visibly() && !life.supervisor_killed),
            ended_otherwise: count(&|life| {
                life.end.is_some() && !completed(life) && !cancelled(life) && !life.is_lost_visibly()
            }),
            events_missing: lives.iter().map(missing).sum(),
            events_doubled: lives.iter().map(|life| life.stored.doubled).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(id: &str, stored: usize) -> Life {
        Life {
            known: true,
            starts: 1,
            end: Some(End::Completed),
            stored: Numbered { distinct: stored, last: stored as u64, ..Numbered::default() },
            ..Life::unknown(id)
        }
    }

    fn lost(id: &str) -> Life {
        let end = End::Failed { kind: FailureKind::SupervisorLost, message: String::new(), retry_at: None };
        Life { end: Some(end), starts: 0, supervisor_killed: true, ..completed(id, 0) }
    }

    #[test]
    fn a_visible_loss_is_no_fault() {
        let tally = Tally::of(&[completed("a", 3), lost("b")], 3);
        assert_eq!(tally, Tally { completed: 1, lost_visibly: 1, ..Tally::default() });
    }

    #[test]
    fn every_fault_is_counted() {
        let twice = Life { starts: 2, ..completed("a", 2) };
        let wrongly = Life { supervisor_killed: false, ..lost("b") };
        let never = Life { starts: 0, ..completed("c", 3) };
        let same_key = Life { key: "c".to_owned(), ..completed("d", 3) };
        let open = Life { end: None, ..completed("e", 3) };
        let tally = Tally::of(&[twice, wrongly, never, same_key, open, Life::unknown("f")], 3);
        assert_eq!((tally.started_twice, tally.lost_without_a_kill, tally.never_started), (1, 1, 1));
        assert_eq!((tally.two_for_one_key, tally.acknowledged_but_lost, tally.events_missing), (1, 2, 1));
    }

    #[test]
    fn a_stopped_agent_may_leave_a_beginning_but_no_gap() {
        let stopped = Life { end: Some(End::Cancelled { reason: None }), ..completed("a", 2) };
        assert_eq!(Tally::of(std::slice::from_ref(&stopped), 30).events_missing, 0);
        let gap = Life { stored: Numbered { distinct: 2, last: 3, ..Numbered::default() }, ..stopped };
        assert_eq!(Tally::of(&[gap], 30).events_missing, 1);
    }
}
