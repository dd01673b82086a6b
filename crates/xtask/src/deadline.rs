//! Stops a run on Ctrl-C or when its time is over.

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
    /// Expires after `limit`, or when the user presses Ctrl-C.
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

    /// Polls until the condition holds. It is an error if that takes longer than `limit`.
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

    /// Sleeps, unless interrupted.
    pub(crate) fn sleep(&self, doing: &str, time: Duration) -> Result<(), LoadError> {
        let end = Instant::now() + time;
        self.wait_until(doing, time + Duration::from_secs(1), || Ok(Instant::now() >= end))
    }
}
