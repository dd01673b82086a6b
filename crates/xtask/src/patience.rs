//! When to stop: Ctrl-C, and a deadline for everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::clock::pause;
use crate::error::LoadError;

const LOOK_EVERY: Duration = Duration::from_millis(10);

#[derive(Debug, Clone)]
pub struct Patience {
    interrupted: Arc<AtomicBool>,
    until: Instant,
}

impl Patience {
    /// Until the time is over, or somebody presses Ctrl-C.
    pub fn new(at_most: Duration) -> Result<Patience, LoadError> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))
                .map_err(LoadError::io("listen for signals"))?;
        }
        Ok(Patience { interrupted, until: Instant::now() + at_most })
    }

    pub(crate) fn check(&self, doing: &str) -> Result<(), LoadError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(LoadError::Interrupted);
        }
        if Instant::now() >= self.until {
            return Err(LoadError::OutOfTime { doing: doing.to_owned() });
        }
        Ok(())
    }

    /// Looks until it is so. It is an error if that takes longer.
    pub(crate) fn until(
        &self,
        doing: &str,
        at_most: Duration,
        mut is_so: impl FnMut() -> Result<bool, LoadError>,
    ) -> Result<(), LoadError> {
        let deadline = Instant::now() + at_most;
        while !is_so()? {
            self.check(doing)?;
            if Instant::now() >= deadline {
                return Err(LoadError::OutOfTime { doing: doing.to_owned() });
            }
            pause(LOOK_EVERY);
        }
        Ok(())
    }

    /// Lets a time pass, unless interrupted.
    pub(crate) fn rest(&self, doing: &str, time: Duration) -> Result<(), LoadError> {
        let over = Instant::now() + time;
        self.until(doing, time + Duration::from_secs(1), || Ok(Instant::now() >= over))
    }
}
