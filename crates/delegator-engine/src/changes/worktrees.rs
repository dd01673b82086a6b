//! The two ways to end a worktree: apply its changes, or discard them. Nothing else removes one, except
//! cleaning up if nothing in it would be lost.

use std::path::Path;
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_git::{ApplyRequest, LeftOutReason, NewCommit};
use delegator_registry::{ClaimKind, Registry, TaskFile, WorktreeEvent};
use delegator_supervisor::agent::Variables;

use super::apply::{ApplyOptions, DiffApplication, has_conflicts};
use crate::Changes;
use crate::error::{IsolationError, Result};
use crate::shared::git_program::git;
use crate::upkeep::rescue::rescue_in;
use crate::worktrees::plan::WorktreePlan;
use crate::worktrees::recorded::{
    ClaimedWorktree, PresentWorktree, WorktreeChanges, claim_worktree, worktree_changes,
};

const BRANCH_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct WorktreeApplication {
    pub applied: DiffApplication,
    pub changes: WorktreeChanges,
    pub is_removed: bool,
}

#[derive(Debug)]
pub struct WorktreeBranch {
    pub branch: String,
    pub commit: String,
    pub changes: WorktreeChanges,
    pub is_removed: bool,
}

impl Changes<'_> {
    /// Applies the changes of a worktree to the work tree that contains `directory`, by default the one from
    /// which it was created, and removes the worktree. Conflicts change nothing; `task` has them.
    pub fn apply_worktree(
        &self,
        task: &TaskId,
        owner: &TaskId,
        options: ApplyOptions<'_>,
        directory: Option<&Path>,
        environment: &Variables,
    ) -> Result<WorktreeApplication> {
        let mut registry = self.engine.registry_of(owner)?;
        let mut worktree = self.claim_unused(&mut registry, owner, environment)?;
        let plan = plan_of(worktree.registry, owner)?;
        let changes = worktree.changes()?.refuse_lost(owner)?;
        if let Some(limit) = changes.too_large {
            return Err(IsolationError::DiffTooLarge { task: owner.clone(), limit }.into());
        }
        let source = &plan.worktree.source;
        let directory = directory.unwrap_or(&source.repository.top_level);
        let applied = if changes.diff.is_empty() {
            DiffApplication::default()
        } else {
            let request = ApplyRequest {
                work_tree: directory,
                diff: &changes.diff,
                base_commit: Some(&source.commit),
                store: Some(&plan.worktree.store),
            };
            let applied = self.apply_text(owner, request, environment, options);
            if has_conflicts(&applied) {
                let _ = worktree.registry.record_apply_conflict(task, true);
            }
            applied?
        };
        let is_removed = !options.dry_run && {
            if changes.is_complete() || !changes.diff.is_empty() {
                record_applied(worktree.registry, owner, &changes, self.engine.now_ms())?;
            }
            !options.keep && changes.is_complete() && worktree.remove(&changes)?
        };
        Ok(WorktreeApplication { applied, changes, is_removed })
    }

    /// Creates a branch with the changes, and removes the worktree. The user's work tree does not change.
    pub fn branch_worktree(
        &self,
        owner: &TaskId,
        branch: &str,
        message: &str,
        keep: bool,
        environment: &Variables,
    ) -> Result<WorktreeBranch> {
        let mut registry = self.engine.registry_of(owner)?;
        let mut worktree = self.claim_unused(&mut registry, owner, environment)?;
        let registry = &mut *worktree.registry;
        let time_sec = u64::try_from(self.engine.now_ms() / 1000).unwrap_or_default();
        let new = NewCommit { branch, message, time_sec };
        let found = PresentWorktree::find(registry, owner, environment)?;
        let (commit, changes) = match found.filter(|found| found.plan.worktree.path.exists()) {
            Some(found) => {
                let diff = found.compare(registry.dir().task(owner).path())?;
                let commit = found.plan.worktree.create_branch(&found.git, &diff, new)?;
                let mut changes = WorktreeChanges::of(&diff);
                if found.plan.worktree.agent_head().is_some() {
                    changes.left_out.retain(|file| file.reason != LeftOutReason::Commits);
                }
                (commit, changes)
            }
            // A run that was killed while it removed the worktree had created the branch.
            None => {
                let (applied, plan) = (registry.worktree(owner)?, plan_of(registry, owner)?);
                let was_applied = applied.is_some_and(|stored| stored.applied_at_ms.is_some());
                let git = git(environment, &plan.worktree.source.repository.top_level, BRANCH_TIMEOUT)?;
                let commit = plan.worktree.branch_commit(&git, branch)?.filter(|_| was_applied);
                let commit = commit.ok_or_else(|| IsolationError::Gone { task: owner.clone() })?;
                (commit, worktree_changes(registry, owner, environment)?)
            }
        };
        record_applied(registry, owner, &changes, self.engine.now_ms())?;
        let is_removed = !keep && changes.left_out.is_empty() && worktree.remove(&changes)?;
        Ok(WorktreeBranch { branch: branch.to_owned(), commit, changes, is_removed })
    }

    /// Removes a worktree with its commits. Its diff is stored first; what is not in it is lost, so that
    /// needs `may_lose`. Returns what was in it.
    pub fn discard_worktree(
        &self,
        owner: &TaskId,
        may_lose: bool,
        environment: &Variables,
    ) -> Result<WorktreeChanges> {
        let mut registry = self.engine.registry_of(owner)?;
        let mut worktree = self.claim_unused(&mut registry, owner, environment)?;
        let only_copy = |names| IsolationError::OnlyCopy { task: owner.clone(), names };
        let changes = match worktree.changes() {
            Ok(changes) if may_lose || changes.is_removed || changes.is_complete() => changes,
            Ok(changes) => return Err(only_copy(changes.omissions().names()).into()),
            // What cannot be compared can still be removed.
            Err(_) if may_lose => WorktreeChanges::unknown(),
            Err(error) => return Err(only_copy(format!("it cannot be compared, because {error}")).into()),
        };
        if !worktree.remove(&changes)? {
            refuse_while_used(worktree.registry, owner)?;
        }
        worktree.registry.record_apply_conflict(owner, false)?;
        Ok(changes)
    }

    /// Until it is removed, a task that is submitted into it is refused.
    fn claim_unused<'a>(
        &'a self,
        registry: &'a mut Registry,
        owner: &'a TaskId,
        environment: &'a Variables,
    ) -> Result<ClaimedWorktree<'a>> {
        rescue_in(self.engine, registry)?;
        let _claim = claim_worktree(self.engine, registry, owner, ClaimKind::Removal)?;
        refuse_while_used(registry, owner)?;
        Ok(ClaimedWorktree { engine: self.engine, registry, owner, environment, _claim })
    }
}

/// Stores what was applied, too: later it tells whether the worktree has changed since.
fn record_applied(
    registry: &mut Registry,
    owner: &TaskId,
    changes: &WorktreeChanges,
    now_ms: i64,
) -> Result<()> {
    if !changes.is_removed && changes.too_large.is_none() {
        registry.dir().task(owner).write_durably(TaskFile::Diff, &changes.diff)?;
    }
    registry.record_apply_conflict(owner, false)?;
    Ok(registry.record_worktree(owner, WorktreeEvent::Applied, now_ms)?)
}

pub(super) fn plan_of(registry: &Registry, owner: &TaskId) -> Result<WorktreePlan> {
    let stored = registry.worktree(owner)?;
    WorktreePlan::of_stored(&stored.ok_or_else(|| IsolationError::Gone { task: owner.clone() })?)
}

/// A worktree in which a task works, or will, must stay as it is.
fn refuse_while_used(registry: &Registry, owner: &TaskId) -> Result<()> {
    match registry.live_tasks_in_worktree(owner)?.into_iter().next() {
        Some(busy) => Err(IsolationError::Busy { task: owner.clone(), busy }.into()),
        None => Ok(()),
    }
}
