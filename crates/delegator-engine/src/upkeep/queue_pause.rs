//! Pauses and resumes the queue. While it is paused, running tasks continue and no task starts.

use crate::Engine;
use crate::error::EngineError;

/// The queue after it was paused or resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueStatus {
    pub was_paused: bool,
    pub queued: u64,
    pub running: u64,
}

impl Engine {
    /// Whether the queue of this state directory is paused.
    pub fn is_queue_paused(&self) -> Result<bool, EngineError> {
        Ok(self.find_registry()?.map(|registry| registry.queue_paused()).transpose()?.unwrap_or(false))
    }

    /// Pauses the queue of this state directory, or resumes it and starts what may start.
    pub fn set_queue_paused(&self, paused: bool) -> Result<QueueStatus, EngineError> {
        use delegator_domain::task::State;
        let mut registry = self.open_registry()?;
        let was_paused = registry.queue_paused()?;
        registry.set_queue_paused(paused)?;
        self.rescue_in(&mut registry)?;
        let counts = registry.counts()?;
        Ok(QueueStatus {
            was_paused,
            queued: counts.of(State::Queued),
            running: counts.of(State::Starting) + counts.of(State::Working),
        })
    }
}
