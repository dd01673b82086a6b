//! Computes the progress of a turn.
//!
//! Progress comes from the agent's own plan if there is one. Otherwise it is computed from started and finished items,
//! with the final answer as one more step, so that an agent between two commands does not look finished. The percentage
//! never decreases within a turn and reaches 100 only at its end.

use serde::{Deserialize, Serialize};

/// Progress of the last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100; 100 only when the turn has completed.
    pub percent: u8,
    pub completed_steps: u64,
    pub total_steps: u64,
    /// Whether the steps come from the agent's plan.
    pub from_plan: bool,
}

#[derive(Debug, Default)]
pub(super) struct ProgressTracker {
    started: u64,
    finished: u64,
    plan: Option<(u64, u64)>,
    highest: u8,
    is_over: bool,
}

impl ProgressTracker {
    pub(super) fn turn_started(&mut self) {
        *self = Self::default();
    }

    pub(super) fn turn_completed(&mut self) {
        self.is_over = true;
    }

    pub(super) fn item_started(&mut self) {
        self.started += 1;
        self.update_highest();
    }

    pub(super) fn item_finished(&mut self) {
        self.finished += 1;
        self.update_highest();
    }

    pub(super) fn plan(&mut self, completed: u64, total: u64) {
        self.plan = Some((completed, total)).filter(|_| total > 0);
        self.update_highest();
    }

    fn steps(&self) -> (u64, u64) {
        match self.plan {
            Some(steps) => steps,
            None => (self.finished + u64::from(self.is_over), self.started.max(self.finished) + 1),
        }
    }

    fn update_highest(&mut self) {
        let (completed, total) = self.steps();
        let percent = (completed * 100).checked_div(total).unwrap_or(0).min(99);
        self.highest = self.highest.max(u8::try_from(percent).unwrap_or(99));
    }

    pub(super) fn report(&self) -> Progress {
        let (completed_steps, total_steps) = self.steps();
        Progress {
            percent: if self.is_over { 100 } else { self.highest },
            completed_steps,
            total_steps,
            from_plan: self.plan.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_counts_as_one_more_step() {
        let mut tracker = ProgressTracker::default();
        tracker.item_started();
        assert_eq!(tracker.report().percent, 0);
        tracker.item_finished();
        let half = Progress { percent: 50, completed_steps: 1, total_steps: 2, from_plan: false };
        assert_eq!(tracker.report(), half);
        tracker.turn_completed();
        let whole = Progress { percent: 100, completed_steps: 2, total_steps: 2, from_plan: false };
        assert_eq!(tracker.report(), whole);
    }

    #[test]
    fn percent_never_goes_down_and_never_reaches_100_before_the_end() {
        let mut tracker = ProgressTracker::default();
        tracker.plan(3, 3);
        assert_eq!(tracker.report().percent, 99);
        tracker.plan(1, 10);
        assert_eq!((tracker.report().percent, tracker.report().completed_steps), (99, 1));
    }
}
