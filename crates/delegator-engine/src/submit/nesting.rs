//! Tasks that are submitted from inside a task: how deep, and how many beside each other.
//!
//! The mark in the environment says where a submission comes from. Whoever takes it out of there is counted as nobody's
//! child; the limits keep agents from running away by mistake, the sandbox keeps them from doing so on purpose.

use delegator_registry::{Registry, Task};
use serde_json::Value;

use crate::error::EngineError;

/// Where a submission comes from, and what is allowed there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nesting {
    /// The task it is submitted from.
    pub parent: Option<String>,
    pub max_depth: u32,
    pub max_children: usize,
}

/// Under which the parent is kept with the input.
const PARENT: &str = "parent_task_id";

impl Nesting {
    /// Whether a task may stand so deep.
    pub(crate) fn check_depth(&self, depth: u32) -> Result<(), EngineError> {
        match depth > self.max_depth {
            true => Err(EngineError::NestingTooDeep { depth, allowed: self.max_depth }),
            false => Ok(()),
        }
    }

    /// Whether the parent may have one more that runs or waits.
    pub(crate) fn check_children(&self, registry: &Registry) -> Result<(), EngineError> {
        let Some(parent) = &self.parent else { return Ok(()) };
        let is_child = |task: &Task| task.input[PARENT].as_str() == Some(parent);
        let mut children = registry.queue(u32::MAX)?.iter().filter(|task| is_child(task)).count();
        for active in registry.active()? {
            children += usize::from(registry.get(&active.id)?.is_some_and(|task| is_child(&task)));
        }
        match children >= self.max_children {
            true => Err(EngineError::TooManyChildren { parent: parent.clone(), allowed: self.max_children }),
            false => Ok(()),
        }
    }

    /// The input as it is kept.
    pub(crate) fn add_parent_to(&self, mut input: Value) -> Value {
        if let (Some(parent), Some(object)) = (&self.parent, input.as_object_mut()) {
            object.insert(PARENT.to_owned(), parent.clone().into());
        }
        input
    }
}
