//! Schedules the upkeep passes of a process that waits for tasks: rescue, promotion, retention, leftovers.

use std::time::{Duration, Instant};

use super::task_watch::TaskWatch;
use crate::Engine;
use crate::error::Result;
use crate::upkeep::rescue::UpkeepRegistration;

/// A lost supervisor must be noticed within three seconds as long as any process waits.
const PASS_INTERVAL: Duration = Duration::from_millis(2_500);
/// How soon to check again for a supervisor that is not visible but holds its lock (in another pid
/// namespace).
const MISSING_RETRY_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct UpkeepSchedule {
    next: Instant,
    next_if_supervisor_missing: Instant,
    /// Set from the first pass on.
    registration: Option<UpkeepRegistration>,
}

impl UpkeepSchedule {
    pub(crate) fn starting_now() -> UpkeepSchedule {
        let now = Instant::now();
        UpkeepSchedule { next: now, next_if_supervisor_missing: now, registration: None }
    }

    pub(crate) fn next(&self, watch: &TaskWatch) -> Instant {
        if watch.has_missing_supervisor() {
            self.next.min(self.next_if_supervisor_missing)
        } else {
            self.next
        }
    }

    /// Makes a pass if one is due; returns whether it did.
    pub(crate) fn run_if_due(&mut self, engine: &Engine, watch: &mut TaskWatch) -> Result<bool> {
        if Instant::now() < self.next(watch) {
            return Ok(false);
        }
        engine.rescue_in(&mut watch.registry)?;
        self.registration.get_or_insert_with(|| UpkeepRegistration::register(&engine.state_dir));
        engine.start_pruning_if_due(&mut watch.registry)?;
        engine.remove_orphaned_launches_in_background(&mut watch.registry)?;
        let now = Instant::now();
        (self.next, self.next_if_supervisor_missing) = (now + PASS_INTERVAL, now + MISSING_RETRY_INTERVAL);
        Ok(true)
    }
}
