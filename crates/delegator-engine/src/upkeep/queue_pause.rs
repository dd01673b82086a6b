//! Pauses and resumes the queue, or only the tasks of one agent. Running tasks continue; no further task
//! starts.

use delegator_domain::task::State;
use delegator_registry::{AgentPause, Registry};

use super::rescue::rescue_in;
use crate::Queue;
use crate::error::Result;

const BY_A_USER: &str = "paused by a user";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStatus {
    pub is_changed: bool,
    pub is_paused: bool,
    pub agent_pauses: Vec<AgentPause>,
    pub queued: u64,
    pub running: u64,
}

impl Queue<'_> {
    pub fn is_paused(&self) -> Result<bool> {
        self.engine.query(Registry::queue_paused)
    }

    pub fn agent_pauses(&self) -> Result<Vec<AgentPause>> {
        self.engine.query(|registry| registry.agent_pauses(self.engine.now_ms()))
    }

    /// Pauses the queue of this state directory, or resumes it and starts what may start.
    pub fn set_paused(&self, paused: bool) -> Result<QueueStatus> {
        let mut registry = self.engine.open_registry()?;
        let was_paused = registry.queue_paused()?;
        registry.set_queue_paused(paused)?;
        self.queue_status(&mut registry, was_paused != paused)
    }

    /// Pauses the tasks of an agent until it is resumed, or resumes them and starts what may start.
    pub fn set_agent_paused(&self, agent: &str, paused: bool) -> Result<QueueStatus> {
        let mut registry = self.engine.open_registry()?;
        let is_changed = if paused {
            registry.pause_agent(agent, BY_A_USER, self.engine.now_ms())?
        } else {
            registry.resume_agent(agent, self.engine.now_ms())?
        };
        self.queue_status(&mut registry, is_changed)
    }

    fn queue_status(&self, registry: &mut Registry, is_changed: bool) -> Result<QueueStatus> {
        rescue_in(self.engine, registry)?;
        let counts = registry.counts()?;
        Ok(QueueStatus {
            is_changed,
            is_paused: registry.queue_paused()?,
            agent_pauses: registry.agent_pauses(self.engine.now_ms())?,
            queued: counts.of(State::Queued),
            running: counts.of(State::Starting) + counts.of(State::Working),
        })
    }
}
