//! Limits for tasks that are submitted from inside a task: nesting depth and number of children.
//!
//! A marker in the environment names the parent task. A process that removes the marker counts as having no parent: the
//! limits protect against accidental recursion; the sandbox protects against intent.

use delegator_registry::{Registry, Task};
use serde_json::Value;

use crate::error::EngineError;

/// The parent of a submission, and the configured limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nesting {
    /// The task that submits, if any.
    pub parent: Option<String>,
    pub max_depth: u32,
    pub max_children: usize,
}

/// The key of the parent in the stored input.
const PARENT: &str = "parent_task_id";

impl Nesting {
    pub(crate) fn check_depth(&self, depth: u32) -> Result<(), EngineError> {
        match depth > self.max_depth {
            true => Err(EngineError::NestingTooDeep { depth, allowed: self.max_depth }),
            false => Ok(()),
        }
    }

    /// Refuses more running or queued children than the parent may have, with `new` more.
    pub(crate) fn check_children(&self, registry: &Registry, new: usize) -> Result<(), EngineError> {
        let Some(parent) = &self.parent else { return Ok(()) };
        let is_child = |task: &Task| task.input[PARENT].as_str() == Some(parent);
        let mut children = registry.queue(u32::MAX)?.iter().filter(|task| is_child(task)).count();
        for active in registry.active()? {
            children += usize::from(registry.get(&active.id)?.is_some_and(|task| is_child(&task)));
        }
        match children + new > self.max_children {
            true => Err(EngineError::TooManyChildren { parent: parent.clone(), allowed: self.max_children }),
            false => Ok(()),
        }
    }

    pub(crate) fn add_parent_to(&self, mut input: Value) -> Value {
        if let (Some(parent), Some(object)) = (&self.parent, input.as_object_mut()) {
            object.insert(PARENT.to_owned(), parent.clone().into());
        }
        input
    }
}
