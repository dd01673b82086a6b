//! Limits for tasks that are submitted from inside a task: nesting depth, number of children, and rights.
//!
//! [`super::caller`] finds the parent. A task never has more rights than its parent: neither a wider mode, nor other directories to
//! write in, nor an agent without a sandbox.

use std::path::PathBuf;

use delegator_domain::task::{Mode, SandboxKind, TaskId};
use delegator_registry::{Registry, Task};
use serde_json::Value;

use super::caller::CallerTask;
use super::submission::Submission;
use crate::error::EngineError;

/// The parent of a submission, and the configured limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Nesting {
    /// The task that submits, if any.
    pub parent: Option<CallerTask>,
    pub max_depth: u32,
    pub max_children: usize,
}

/// The key of the parent in the stored input.
const PARENT: &str = "parent_task_id";

/// The task that submitted this one.
pub(super) fn parent_of(task: &Task) -> Option<TaskId> {
    task.input[PARENT].as_str()?.parse().ok()
}

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
        let is_child = |task: &Task| task.input[PARENT].as_str() == Some(parent.id.as_str());
        let mut children = registry.queue(u32::MAX)?.iter().filter(|task| is_child(task)).count();
        for active in registry.active()? {
            children += usize::from(registry.get(&active.id)?.is_some_and(|task| is_child(&task)));
        }
        match children + new > self.max_children {
            true => Err(EngineError::TooManyChildren {
                parent: parent.id.to_string(),
                allowed: self.max_children,
            }),
            false => Ok(()),
        }
    }

    pub(crate) fn add_parent_to(&self, mut input: Value) -> Value {
        if let (Some(parent), Some(object)) = (&self.parent, input.as_object_mut()) {
            object.insert(PARENT.to_owned(), parent.id.as_str().into());
        }
        input
    }
}

impl Submission {
    /// Refuses rights that the parent does not have. The directories are resolved.
    pub(super) fn check_rights(&mut self) -> Result<(), EngineError> {
        let Some(parent) = self.nesting.parent.as_ref().and_then(|parent| parent.task.clone()) else {
            return Ok(());
        };
        let mode = self.settings.effective_mode();
        check_mode(&parent, mode)?;
        let exceeds = |right| Err(EngineError::ExceedsParent { parent: parent.id.clone(), right });
        if parent.sandbox.is_none_or(SandboxKind::enforces_mode) {
            if let Some(open) = self.per_agent().find(|it| !it.agent.sandbox(mode).enforces_mode()) {
                return exceeds(format!("to run {} without a sandbox", open.agent.name));
            }
            if let Some(verify) = &mut self.settings.verify {
                verify.allow_unsandboxed = false;
            }
        }
        let roots = writable_roots(&parent);
        let mut directories = self.settings.add_dirs.iter().chain([&self.settings.working_dir]);
        let outside = directories.find(|directory| !roots.iter().any(|root| directory.starts_with(root)));
        match outside {
            Some(outside) if mode == Mode::WorkspaceWrite && parent.mode == mode => {
                exceeds(format!("to write in {}", outside.display()))
            }
            _ => Ok(()),
        }
    }
}

/// Refuses a mode that the parent does not have.
pub(crate) fn check_mode(parent: &Task, mode: Mode) -> Result<(), EngineError> {
    match mode > parent.mode {
        true => Err(EngineError::ExceedsParent {
            parent: parent.id.clone(),
            right: format!("mode {}", mode.name()),
        }),
        false => Ok(()),
    }
}

/// The directories in which a task in workspace-write mode writes.
fn writable_roots(task: &Task) -> Vec<PathBuf> {
    let own = match task.work_trees.first().filter(|_| task.worktree.is_some()) {
        Some(worktree) => worktree.root().to_owned(),
        None => PathBuf::from(&task.working_dir),
    };
    let added = task.input["add_dirs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let absolute = added.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute.chain([own]).filter_map(|path| path.canonicalize().ok()).collect()
}
