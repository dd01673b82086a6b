//! Time: waiting as long as a script says, and writing as fast as it says.

#![expect(
    clippy::disallowed_methods,
    reason = "a script says how long to wait; that is the behaviour to be shown"
)]

use std::time::{Duration, Instant};

use super::{Played, Player};

/// The shortest sleep worth the trouble.
const TICK: Duration = Duration::from_millis(1);

pub(super) fn sleep(time: Duration) {
    std::thread::sleep(time);
}

impl Player {
    pub(super) fn delay(milliseconds: u64) -> Played {
        sleep(Duration::from_millis(milliseconds));
        Ok(())
    }

    pub(super) fn delay_between(&mut self, least: u64, most: u64) -> Played {
        let time = self.random.u64(least..=most.max(least));
        Self::delay(time)
    }
    pub(super) fn spin(milliseconds: u64) -> Played {
        let end = Instant::now() + Duration::from_millis(milliseconds);
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

/// Says how many units may be written now.
#[derive(Debug)]
pub(super) struct Pace {
    begun: Instant,
    per_second: Option<f64>,
    granted: u64,
}

impl Pace {
    /// No rate is as fast as possible.
    pub(super) fn new(per_second: Option<f64>) -> Self {
        Self { begun: Instant::now(), per_second: per_second.filter(|rate| *rate > 0.0), granted: 0 }
    }

    /// Waits until something is due, then grants between 1 and `most`.
    pub(super) fn next(&mut self, most: u64) -> u64 {
        let Some(rate) = self.per_second else { return most };
        loop {
            // The first unit is due at once.
            let due = (self.begun.elapsed().as_secs_f64() * rate) as u64 + 1;
            if due > self.granted {
                let now = (due - self.granted).min(most);
                self.granted += now;
                return now;
            }
            let next = self.begun + Duration::from_secs_f64(self.granted as f64 / rate);
            sleep(next.saturating_duration_since(Instant::now()).max(TICK));
        }
    }
}
