//! Timing: delays, and output at a limited rate.

#![expect(clippy::disallowed_methods, reason = "a script defines how long to wait")]

use std::time::{Duration, Instant};

use super::{Runner, StepResult};

/// Shortest sleep.
const MIN_SLEEP: Duration = Duration::from_millis(1);

pub(super) fn sleep(time: Duration) {
    std::thread::sleep(time);
}

impl Runner {
    pub(super) fn delay(milliseconds: u64) -> StepResult {
        sleep(Duration::from_millis(milliseconds));
        Ok(())
    }

    pub(super) fn delay_between(&mut self, min: u64, max: u64) -> StepResult {
        let time = self.random.u64(min..=max.max(min));
        Self::delay(time)
    }
    pub(super) fn spin(milliseconds: u64) -> StepResult {
        let end = Instant::now() + Duration::from_millis(milliseconds);
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

/// Limits output to a rate.
#[derive(Debug)]
pub(super) struct Pace {
    started_at: Instant,
    per_second: Option<f64>,
    granted: u64,
}

impl Pace {
    /// Without a rate, output is as fast as possible.
    pub(super) fn new(per_second: Option<f64>) -> Self {
        Self { started_at: Instant::now(), per_second: per_second.filter(|rate| *rate > 0.0), granted: 0 }
    }

    /// Waits until a unit is due, then grants between 1 and `max` units.
    pub(super) fn next(&mut self, max: u64) -> u64 {
        let Some(rate) = self.per_second else { return max };
        loop {
            // The first unit is due at once.
            let due = (self.started_at.elapsed().as_secs_f64() * rate) as u64 + 1;
            if due > self.granted {
                let now = (due - self.granted).min(max);
                self.granted += now;
                return now;
            }
            let next = self.started_at + Duration::from_secs_f64(self.granted as f64 / rate);
            sleep(next.saturating_duration_since(Instant::now()).max(MIN_SLEEP));
        }
    }
}
