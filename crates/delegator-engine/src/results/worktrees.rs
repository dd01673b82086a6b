//! The two ways to end a worktree: apply its changes, or discard them.
//!
//! A worktree is removed only by these two, and by cleaning up if nothing in it would be lost.

use std::path::Path;

use delegator_domain::task::TaskId;
use delegator_git::NewCommit;
use delegator_registry::{Registry, WorktreeEvent};
use delegator_supervisor::agent::Variables;

use super::apply::DiffApplication;
use crate::Engine;
use crate::error::EngineError;
use crate::isolation_error::IsolationError;
use crate::submit::worktree::WorktreePlan;
use crate::upkeep::worktrees::{PresentWorktree, WorktreeChanges};

/// How to apply the changes of a worktree.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApplyOptions<'a> {
    pub dry_run: bool,
    /// Also commit them, with this message.
    pub commit: Option<&'a str>,
    /// Do not remove the worktree.
    pub keep: bool,
}

/// What was, or would be, done with a worktree.
#[derive(Debug)]
pub struct WorktreeApplication {
    pub applied: DiffApplication,
    pub changes: WorktreeChanges,
    pub is_removed: bool,
}

/// A branch with the changes of a worktree.
#[derive(Debug)]
pub struct WorktreeBranch {
    pub branch: String,
    pub commit: String,
    pub changes: WorktreeChanges,
    pub is_removed: bool,
}

impl Engine {
    /// Applies the changes of a worktree to the work tree that contains `directory`, by default the one from which it was
    /// created, and removes the worktree. Conflicts change nothing.
    pub fn apply_worktree(
        &self,
        owner: &TaskId,
        options: ApplyOptions<'_>,
        (directory, environment): (Option<&Path>, &Variables),
    ) -> Result<WorktreeApplication, EngineError> {
        let mut registry = self.registry_of(owner)?;
        self.rescue_in(&mut registry)?;
        refuse_while_used(&registry, owner)?;
        let plan = plan_of(&registry, owner)?;
        let changes = self.worktree_changes(owner, environment)?;
        if let Some(limit) = changes.too_large {
            return Err(IsolationError::DiffTooLarge { task: owner.clone(), limit }.into());
        }
        let source = &plan.worktree.source;
        let directory = directory.unwrap_or(&source.top_level);
        let base = (Some(source.commit.as_str()), Some(plan.worktree.store.as_path()));
        let applied = match changes.diff.is_empty() {
            true => DiffApplication::default(),
            false => self.apply_text((owner, &changes.diff), base, (directory, environment), options)?,
        };
        let is_removed = !options.dry_run && {
            registry.record_worktree(owner, WorktreeEvent::Applied, self.now_ms())?;
            let may_remove = !options.keep && changes.is_complete();
            may_remove && self.remove_worktree(&mut registry, owner, &changes, environment)?
        };
        Ok(WorktreeApplication { applied, changes, is_removed })
    }

    /// Creates a branch with the changes of a worktree, and removes the worktree. The user's work tree does not change.
    pub fn branch_worktree(
        &self,
        owner: &TaskId,
        (branch, message): (&str, &str),
        keep: bool,
        environment: &Variables,
    ) -> Result<WorktreeBranch, EngineError> {
        let mut registry = self.registry_of(owner)?;
        self.rescue_in(&mut registry)?;
        refuse_while_used(&registry, owner)?;
        let found = PresentWorktree::find(&registry, owner, environment)?
            .ok_or_else(|| IsolationError::Gone { task: owner.clone() })?;
        let diff = found.compare(registry.dir().task(owner).path())?;
        let time_sec = u64::try_from(self.now_ms() / 1000).unwrap_or_default();
        let commit = NewCommit { branch, message, time_sec };
        let commit = found.plan.worktree.create_branch(&found.git, &diff, commit)?;
        let changes = WorktreeChanges::of(&diff);
        drop(diff);
        registry.record_worktree(owner, WorktreeEvent::Applied, self.now_ms())?;
        let may_remove = !keep && changes.left_out.is_empty();
        let is_removed = may_remove && self.remove_worktree(&mut registry, owner, &changes, environment)?;
        Ok(WorktreeBranch { branch: branch.to_owned(), commit, changes, is_removed })
    }

    /// Removes a worktree with its branch. Its diff is stored first. Returns what was in it.
    pub fn discard_worktree(
        &self,
        owner: &TaskId,
        environment: &Variables,
    ) -> Result<WorktreeChanges, EngineError> {
        let mut registry = self.registry_of(owner)?;
        self.rescue_in(&mut registry)?;
        refuse_while_used(&registry, owner)?;
        let changes = self.worktree_changes(owner, environment)?;
        self.remove_worktree(&mut registry, owner, &changes, environment)?;
        Ok(changes)
    }
}

fn plan_of(registry: &Registry, owner: &TaskId) -> Result<WorktreePlan, EngineError> {
    let stored = registry.worktree(owner)?;
    WorktreePlan::of_stored(&stored.ok_or_else(|| IsolationError::Gone { task: owner.clone() })?)
}

/// A worktree in which a task works, or will, must stay as it is.
fn refuse_while_used(registry: &Registry, owner: &TaskId) -> Result<(), EngineError> {
    match registry.live_tasks_in_worktree(owner)?.into_iter().next() {
        Some(busy) => Err(IsolationError::Busy { task: owner.clone(), busy }.into()),
        None => Ok(()),
    }
}
