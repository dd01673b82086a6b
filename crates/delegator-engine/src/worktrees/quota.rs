//! How much disk space worktrees take. If it is too much, only a worktree in which nothing changed is removed
//! without a request of the user; if that is not enough, a new one is refused, and the oldest are named.

use std::path::Path;

use delegator_domain::task::TaskId;
use delegator_registry::{ClaimKind, Registry, StoredWorktree};
use delegator_supervisor::agent::Variables;

use crate::Worktrees;
use crate::error::{IsolationError, Result};
use crate::shared::directories::disk_usage;
use crate::worktrees::recorded::ClaimedWorktree;

const MAX_NAMED: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeSize {
    pub owner: TaskId,
    pub path: String,
    pub bytes: u64,
}

impl Worktrees<'_> {
    /// The disk space of every worktree, the oldest first.
    pub fn sizes(&self) -> Result<Vec<WorktreeSize>> {
        match self.engine.find_registry()? {
            Some(mut registry) => sizes(&mut registry),
            None => Ok(Vec::new()),
        }
    }

    /// Removes unchanged worktrees, the oldest first, until all take at most `quota` bytes; else an error.
    pub fn enforce_quota(&self, quota: u64, environment: &Variables) -> Result<()> {
        let Some(mut registry) = self.engine.find_registry()? else { return Ok(()) };
        let mut sizes = sizes(&mut registry)?;
        let used = |sizes: &[WorktreeSize]| sizes.iter().map(|size| size.bytes).sum::<u64>();
        let mut next = 0;
        while used(&sizes) > quota
            && let Some(size) = sizes.get(next)
        {
            // A worktree that cannot be examined or removed is needed.
            match self.remove_unneeded(&mut registry, &size.owner, environment) {
                Ok(true) => drop(sizes.remove(next)),
                Ok(false) | Err(_) => next += 1,
            }
        }
        match used(&sizes) {
            used if used > quota => {
                let oldest = sizes.into_iter().take(MAX_NAMED).map(|size| size.owner).collect();
                Err(IsolationError::QuotaExceeded { used, quota, oldest }.into())
            }
            _ => Ok(()),
        }
    }

    /// Removes a worktree that no task uses and in which nothing changed. Returns whether it did.
    fn remove_unneeded(
        &self,
        registry: &mut Registry,
        owner: &TaskId,
        environment: &Variables,
    ) -> Result<bool> {
        let claim = registry.dir().task(owner).try_claim_worktree(ClaimKind::Removal)?;
        let is_unused = registry.live_tasks_in_worktree(owner).is_ok_and(|tasks| tasks.is_empty());
        let Some(_claim) = claim.filter(|_| is_unused) else { return Ok(false) };
        let mut worktree = ClaimedWorktree { engine: self.engine, registry, owner, environment, _claim };
        let changes = worktree.changes()?;
        let is_unneeded = changes.diff.is_empty() && changes.is_complete();
        Ok(is_unneeded && worktree.remove(&changes)?)
    }
}

fn sizes(registry: &mut Registry) -> Result<Vec<WorktreeSize>> {
    let present = registry.present_worktrees()?;
    let mut sizes = Vec::new();
    for worktree in present.into_iter().filter(StoredWorktree::is_present) {
        let bytes = match worktree.bytes {
            Some(bytes) => bytes,
            // Its task has not ended.
            None => disk_usage(Path::new(&worktree.path)),
        };
        sizes.push(WorktreeSize { owner: worktree.owner, path: worktree.path, bytes });
    }
    Ok(sizes)
}
