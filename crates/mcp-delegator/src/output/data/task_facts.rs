//! Facts about a task for a bug report: nothing that the user or the agent wrote, and no path.

use delegator_registry::Task;
use serde::Serialize;

use crate::output::values::UtcTime;

#[derive(Debug, Serialize)]
pub struct TaskFacts<'a> {
    pub task_id: &'a str,
    pub state: &'static str,
    pub agent: &'a str,
    pub mode: &'static str,
    pub model: Option<&'a str>,
    pub created: UtcTime,
    pub started: Option<UtcTime>,
    pub updated: UtcTime,
    pub starts: u32,
    pub containment: Option<&'a str>,
    pub has_survivors: bool,
}

impl TaskFacts<'_> {
    pub fn of(task: &Task) -> TaskFacts<'_> {
        TaskFacts {
            task_id: task.id.as_str(),
            state: task.state.public_name(),
            agent: &task.agent,
            mode: task.mode.name(),
            model: task.model.as_deref(),
            created: UtcTime::from_ms(task.created_at_ms),
            started: task.started_at_ms.map(UtcTime::from_ms),
            updated: UtcTime::from_ms(task.updated_at_ms),
            starts: task.starts,
            containment: task.containment.as_deref(),
            has_survivors: task.ended.as_ref().is_some_and(|ended| !ended.survivors.is_empty()),
        }
    }
}
