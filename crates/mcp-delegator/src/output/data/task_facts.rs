//! Facts about a task for a bug report: nothing that the user or the agent wrote, and no path.

use std::collections::BTreeMap;

use delegator_domain::task::{SandboxKind, TaskEnd};
use delegator_registry::Task;
use serde::Serialize;

use crate::output::values::UtcTime;

#[derive(Debug, Clone, Serialize)]
pub struct TaskFacts<'a> {
    pub task_id: &'a str,
    pub state: &'static str,
    pub agent: &'a str,
    pub mode: &'static str,
    pub sandbox: Option<&'static str>,
    pub model: Option<&'a str>,
    pub created: UtcTime,
    pub started: Option<UtcTime>,
    pub updated: UtcTime,
    pub starts: u32,
    pub containment: Option<&'a str>,
    pub has_survivors: bool,
    /// Why it failed.
    pub failure_kind: Option<&'static str>,
}

impl TaskFacts<'_> {
    pub fn of(task: &Task) -> TaskFacts<'_> {
        TaskFacts {
            task_id: task.id.as_str(),
            state: task.state.public_name(),
            agent: &task.agent,
            mode: task.mode.name(),
            sandbox: task.sandbox.map(SandboxKind::name),
            model: task.model.as_deref(),
            created: UtcTime::from_ms(task.created_at_ms),
            started: task.started_at_ms.map(UtcTime::from_ms),
            updated: UtcTime::from_ms(task.updated_at_ms),
            starts: task.starts,
            containment: task.containment.as_deref(),
            has_survivors: task.ended.as_ref().is_some_and(|ended| !ended.survivors.is_empty()),
            failure_kind: failure_kind(task),
        }
    }
}

/// How many of the tasks failed, by kind of failure.
pub fn failure_counts(tasks: &[Task]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for kind in tasks.iter().filter_map(failure_kind) {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

fn failure_kind(task: &Task) -> Option<&'static str> {
    match task.ended.as_ref()?.end {
        TaskEnd::Failed { kind, .. } => Some(kind.name()),
        _ => None,
    }
}
