//! Estimates how long a task will take and when it will start, from the durations of completed tasks, of the
//! same directory if there are enough. Progress is estimated only from similar tasks: same directory, agent,
//! mode and model.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_registry::{ActiveTask, Registry};

use crate::Engine;
use crate::error::Result;

const MAX_HISTORY: u32 = 50;
/// With fewer tasks in the directory, the history of all directories is used.
const MIN_HISTORY_IN_DIRECTORY: usize = 3;
/// With fewer similar tasks, the progress of a task is not estimated.
const MIN_SIMILAR: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DurationHistory {
    /// In milliseconds, shortest first; never empty.
    durations_ms: Vec<u64>,
}

/// The middle half of the history: 25th to 75th percentile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedDuration {
    pub from_ms: u64,
    pub to_ms: u64,
}

impl DurationHistory {
    fn of(mut durations_ms: Vec<u64>) -> Option<DurationHistory> {
        durations_ms.sort_unstable();
        (!durations_ms.is_empty()).then_some(DurationHistory { durations_ms })
    }

    pub(crate) fn of_all(registry: &Registry) -> Result<Option<DurationHistory>> {
        Ok(DurationHistory::of(registry.durations_ms(None, MAX_HISTORY)?))
    }

    /// The history of a directory, or of all tasks if the directory has too few.
    pub(crate) fn of_dir(registry: &Registry, working_dir: &str) -> Result<Option<DurationHistory>> {
        let here = registry.durations_ms(Some(working_dir), MAX_HISTORY)?;
        if here.len() >= MIN_HISTORY_IN_DIRECTORY {
            Ok(DurationHistory::of(here))
        } else {
            DurationHistory::of_all(registry)
        }
    }

    /// The median duration of the tasks that are similar to this one; `None` if there are too few.
    pub(crate) fn typical(registry: &Registry, task: &TaskId) -> Result<Option<Duration>> {
        let similar = registry.similar_durations_ms(task, MAX_HISTORY)?;
        let enough = Some(similar).filter(|similar| similar.len() >= MIN_SIMILAR);
        Ok(enough.and_then(DurationHistory::of).map(|history| Duration::from_millis(history.percentile(50))))
    }

    fn percentile(&self, percent: usize) -> u64 {
        self.durations_ms[(self.durations_ms.len() - 1) * percent / 100]
    }

    pub(crate) fn expected(&self) -> ExpectedDuration {
        ExpectedDuration { from_ms: self.percentile(25), to_ms: self.percentile(75) }
    }

    /// The median remaining time of tasks that took longer than this; `None` if none did.
    fn remaining(&self, elapsed_ms: u64) -> Option<u64> {
        let longer = &self.durations_ms[self.durations_ms.partition_point(|took| *took <= elapsed_ms)..];
        longer.get(longer.len().saturating_sub(1) / 2).map(|took| took - elapsed_ms)
    }

    /// Milliseconds until the first `count` queued tasks start; shorter if that is not known for all.
    pub(crate) fn start_times(&self, registry: &Registry, engine: &Engine, count: usize) -> Result<Vec<u64>> {
        let now_ms = engine.now_ms();
        let elapsed =
            |active: &ActiveTask| (now_ms - active.started_at_ms.unwrap_or(now_ms)).max(0).unsigned_abs();
        let elapsed_ms: Vec<u64> = registry.active()?.iter().map(elapsed).collect();
        Ok(self.start_times_after(&elapsed_ms, engine.max_concurrent, count))
    }

    /// `elapsed_ms` is how long each running task has been running.
    fn start_times_after(&self, elapsed_ms: &[u64], slots: usize, count: usize) -> Vec<u64> {
        let running = elapsed_ms.iter().map(|elapsed| self.remaining(*elapsed));
        // A task that already took longer than all in the history frees no slot in this estimate.
        let busy = running.flatten().map(Reverse);
        let idle = slots.saturating_sub(elapsed_ms.len());
        let mut free: BinaryHeap<Reverse<u64>> =
            busy.chain(std::iter::repeat_n(Reverse(0), idle.min(count))).collect();
        let typical = self.percentile(50);
        let mut starts = Vec::new();
        while let (true, Some(Reverse(at))) = (starts.len() < count, free.pop()) {
            starts.push(at);
            free.push(Reverse(at.saturating_add(typical)));
        }
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(took: &[u64]) -> DurationHistory {
        DurationHistory::of(took.to_vec()).unwrap()
    }

    #[test]
    fn the_expected_duration_is_the_middle_half() {
        assert_eq!(DurationHistory::of(Vec::new()), None);
        assert_eq!(history(&[7]).expected(), ExpectedDuration { from_ms: 7, to_ms: 7 });
        let many = history(&[900, 10, 20, 30, 40]);
        assert_eq!(many.expected(), ExpectedDuration { from_ms: 20, to_ms: 40 });
    }

    #[test]
    fn remaining_time_uses_only_longer_durations() {
        let known = history(&[10, 100, 1_000]);
        assert_eq!(known.remaining(0), Some(100));
        assert_eq!(known.remaining(50), Some(50));
        assert_eq!(known.remaining(100), Some(900));
        assert_eq!(known.remaining(1_000), None);
    }

    #[test]
    fn the_queue_takes_slots_as_they_become_free() {
        let known = history(&[100, 100, 100]);
        assert_eq!(known.start_times_after(&[30, 80], 2, 4), [20, 70, 120, 170]);
        assert_eq!(known.start_times_after(&[30], 2, 2), [0, 70]);
        assert_eq!(
            known.start_times_after(&[200, 80], 2, 2),
            [20, 120],
            "the first has outlasted the history"
        );
        assert!(known.start_times_after(&[200], 1, 2).is_empty(), "no slot is known to become free");
    }
}
