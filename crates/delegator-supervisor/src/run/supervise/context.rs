//! What every part of a run may read.

use std::time::{Duration, Instant};

use super::super::ports::{Ports, RunSpec};

/// Longest time between two rounds.
pub(super) const TICK: Duration = Duration::from_secs(1);
pub(super) const UPKEEP_INTERVAL: Duration = Duration::from_secs(30);

pub(super) struct RunContext<'a> {
    pub(super) spec: RunSpec,
    pub(super) ports: &'a dyn Ports,
    pub(super) started: Instant,
}

impl RunContext<'_> {
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn redact(&self, text: &str) -> String {
        self.spec.redactor.redact_str(text).into_owned()
    }
}
