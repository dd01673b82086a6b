//! Agents whose queued tasks do not start for now, in our JSON and as text.

use delegator_registry::AgentPause;

use crate::output::prelude::*;

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PauseData {
    pub agent: String,
    /// Absent if it is paused until a user resumes it.
    pub until_at: Option<UtcTime>,
    pub reason: String,
    /// The task whose end caused the pause.
    pub task_id: Option<String>,
    pub since_at: UtcTime,
}

impl From<&AgentPause> for PauseData {
    fn from(pause: &AgentPause) -> PauseData {
        PauseData {
            agent: pause.agent.clone(),
            until_at: pause.until_ms.map(UtcTime::from_ms),
            reason: pause.reason.clone(),
            task_id: pause.task.as_ref().map(ToString::to_string),
            since_at: UtcTime::from_ms(pause.since_ms),
        }
    }
}

impl PauseData {
    /// `codex paused`, and `until 2026-01-02T03:04:05.000Z: the usage limit was reached`.
    pub fn fact(&self) -> (String, String) {
        (format!("{} paused", self.agent), format!("{}: {}", self.until(), self.reason))
    }

    pub fn until(&self) -> String {
        let time = self.until_at.as_ref().map_or("it is resumed", |until| &until.0);
        format!("until {time}")
    }
}
