//! How the other threads stop an attempt.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use delegator_fleet::FleetClaim;

/// Why the task of a lost attempt is cancelled on this machine.
pub(crate) const NOT_OWNED: &str = "the task no longer belongs to this worker";

/// Why an attempt shall end. A later variant overrides an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The worker is draining: a task that is not started goes back to the queue.
    Release,
    /// Cancel the task and report that.
    Cancel { reason: Option<String> },
    /// The worker has no connection to the database.
    CutOff,
    /// The task no longer belongs to this worker: report nothing.
    Lost,
}

impl Stop {
    fn rank(&self) -> u8 {
        match self {
            Stop::Release => 0,
            Stop::Cancel { .. } => 1,
            Stop::CutOff => 2,
            Stop::Lost => 3,
        }
    }
}

#[derive(Debug)]
pub(crate) struct AttemptControl {
    pub(crate) claim: FleetClaim,
    pub(crate) log_name: String,
    state: Mutex<ControlState>,
    changed: Condvar,
    /// Ends git calls and the setup script.
    interrupt: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct ControlState {
    is_started: bool,
    stop: Option<Stop>,
    /// The worker exits: nothing waits any more.
    is_abandoned: bool,
}

impl AttemptControl {
    pub(crate) fn new(claim: FleetClaim, log_name: String, is_started: bool) -> AttemptControl {
        let state = Mutex::new(ControlState { is_started, ..ControlState::default() });
        AttemptControl { claim, log_name, state, changed: Condvar::new(), interrupt: Arc::default() }
    }

    pub(crate) fn request(&self, stop: Stop) -> bool {
        let mut state = self.state();
        // A started task is not released: it runs to its end.
        let is_too_late = stop == Stop::Release && state.is_started;
        if is_too_late || state.stop.as_ref().is_some_and(|known| known.rank() >= stop.rank()) {
            return false;
        }
        state.stop = Some(stop);
        self.interrupt.store(true, Ordering::Relaxed);
        self.changed.notify_all();
        true
    }

    pub(crate) fn stop(&self) -> Option<Stop> {
        self.state().stop.clone()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.stop() == Some(Stop::Lost)
    }

    pub(crate) fn abandon(&self) {
        self.state().is_abandoned = true;
        self.interrupt.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// From now on the attempt counts as started; false if it shall stop instead.
    pub(crate) fn begin_start(&self) -> bool {
        let mut state = self.state();
        state.is_started = state.stop.is_none();
        state.is_started
    }

    pub(crate) fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupt)
    }

    pub(crate) fn pause(&self, length: Duration) {
        let state = self.state();
        let known = state.stop.clone();
        let is_same = |state: &mut ControlState| state.stop == known && !state.is_abandoned;
        let waited = self.changed.wait_timeout_while(state, length, is_same);
        drop(waited);
    }

    fn state(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
