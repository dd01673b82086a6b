//! Computes the progress of a turn from the agent's own plan.
//!
//! Without a plan the percentage is unknown: how many commands will follow cannot be derived from those that
//! ran. The percentage never decreases within a turn and reaches 100 only at its end.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100; 100 only when the turn has completed. Absent while a turn without a plan runs.
    pub percent: Option<u8>,
    pub steps: Option<PlanSteps>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanSteps {
    pub completed: u64,
    pub total: u64,
}

impl Progress {
    pub(super) fn set_plan(&mut self, completed: u64, total: u64) {
        self.steps = (total > 0).then_some(PlanSteps { completed, total });
        let percent = (completed * 100).checked_div(total).map(|percent| percent.min(99));
        self.percent = self.percent.max(percent.and_then(|percent| u8::try_from(percent).ok()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_plan_the_percentage_is_unknown_until_the_end() {
        let mut progress = Progress::default();
        assert_eq!(progress, Progress::default());
        progress.set_plan(0, 0);
        assert_eq!(progress, Progress::default());
        progress.percent = Some(100);
        assert_eq!(progress, Progress { percent: Some(100), steps: None });
    }

    #[test]
    fn percent_never_goes_down_and_never_reaches_100_before_the_end() {
        let mut progress = Progress::default();
        progress.set_plan(3, 3);
        assert_eq!(progress.percent, Some(99));
        progress.set_plan(1, 10);
        let steps = Some(PlanSteps { completed: 1, total: 10 });
        assert_eq!(progress, Progress { percent: Some(99), steps });
    }
}
