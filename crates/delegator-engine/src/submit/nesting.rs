//! Limits for tasks that are submitted from inside a task: depth, number of children, and rights. A task
//! never has more rights than its parent: no wider mode, no other directories to write in, no agent without a
//! sandbox.

use std::path::PathBuf;

use delegator_domain::task::Mode;
use delegator_registry::{Registry, Task};
use serde_json::Value;

use crate::error::{EngineError, Result};
use crate::shared::task_of_process::{CallerTask, PARENT};

#[derive(Debug, Clone, PartialEq)]
pub struct Nesting {
    pub parent: Option<CallerTask>,
    pub max_depth: u32,
    pub max_children: usize,
}

impl Nesting {
    pub(crate) fn check_depth(&self, depth: u32) -> Result<()> {
        if depth > self.max_depth {
            return Err(EngineError::NestingTooDeep { depth, allowed: self.max_depth });
        }
        Ok(())
    }

    /// Refuses more running or queued children than the parent may have, with `new` more.
    pub(crate) fn check_children(&self, registry: &Registry, new: usize) -> Result<()> {
        let Some(parent) = &self.parent else { return Ok(()) };
        let is_child = |task: &Task| task.input[PARENT].as_str() == Some(parent.id.as_str());
        let mut children = registry.queue(u32::MAX)?.iter().filter(|task| is_child(task)).count();
        for active in registry.active()? {
            children += usize::from(registry.get(&active.id)?.is_some_and(|task| is_child(&task)));
        }
        if children + new > self.max_children {
            let parent = parent.id.to_string();
            return Err(EngineError::TooManyChildren { parent, allowed: self.max_children });
        }
        Ok(())
    }

    pub(crate) fn add_parent_to(&self, mut input: Value) -> Value {
        if let (Some(parent), Some(object)) = (&self.parent, input.as_object_mut()) {
            object.insert(PARENT.to_owned(), parent.id.as_str().into());
        }
        input
    }
}

pub(crate) fn check_mode(parent: &Task, mode: Mode) -> Result<()> {
    if mode > parent.mode {
        let right = format!("mode {}", mode.name());
        return Err(EngineError::ExceedsParent { parent: parent.id.clone(), right });
    }
    Ok(())
}

pub(super) fn writable_roots(task: &Task) -> Vec<PathBuf> {
    let own = match task.work_trees.first().filter(|_| task.worktree.is_some()) {
        Some(worktree) => worktree.root().to_owned(),
        None => PathBuf::from(&task.working_dir),
    };
    let added = task.input["add_dirs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let absolute = added.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute.chain([own]).filter_map(|path| path.canonicalize().ok()).collect()
}
