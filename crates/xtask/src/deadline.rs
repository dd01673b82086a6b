//! When to stop: Ctrl-C, and a deadline for everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::clock::sleep;
use crate::error::LoadError;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug, Clone)]
pub struct Deadline {
    interrupted: Arc<AtomicBool>,
    expires_at: Instant,
}

impl Deadline {
    /// Until the time is over, or somebody presses Ctrl-C.
    pub fn new(limit: Duration) -> Result<Deadline, LoadError> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))
                .map_err(LoadError::io("listen for signals"))?;
        }
        Ok(Deadline { interrupted, expires_at: Instant::now() + limit })
    }

    pub(crate) fn check(&self, doing: &str) -> Result<(), LoadError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(LoadError::Interrupted);
        }
        if Instant::now() >= self.expires_at {
            return Err(LoadError::OutOfTime { doing: doing.to_owned() });
        }
        Ok(())
    }

    /// Looks until it is so. It is an error if that takes longer.
    pub(crate) fn wait_until(
        &self,
        doing: &str,
        limit: Duration,
        mut condition: impl FnMut() -> Result<bool, LoadError>,
    ) -> Result<(), LoadError> {
        let deadline = Instant::now() + limit;
        while !condition()? {
            self.check(doing)?;
            if Instant::now() >= deadline {
                return Err(LoadError::OutOfTime { doing: doing.to_owned() });
            }
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Lets a time pass, unless interrupted.
    pub(crate) fn sleep(&self, doing: &str, time: Duration) -> Result<(), LoadError> {
        let end = Instant::now() + time;
        self.wait_until(doing, time + Duration::from_secs(1), || Ok(Instant::now() >= end))
    }
}
