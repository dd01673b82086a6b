//! How much disk space worktrees take. If it is too much, only a worktree in which nothing changed is removed
//! without a request of the user; if that is not enough, a new one is refused, and the oldest are named.

use std::path::Path;

use delegator_domain::task::TaskId;
use delegator_registry::{ClaimKind, Registry, StoredWorktree};
use delegator_supervisor::agent::Variables;

use crate::Worktrees;
use crate::error::{IsolationError, Result};
use crate::shared::directories::disk_usage;
use crate::worktrees::content::{WorktreeContent, remove_if};
use crate::worktrees::recorded::claim_worktree;

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
        let is_unchanged = |content| content == WorktreeContent::Unchanged;
        let mut next = 0;
        while used(&sizes) > quota
            && let Some(size) = sizes.get(next)
        {
            // The supervisor of its last task may be removing it just now.
            drop(claim_worktree(self.engine, &registry, &size.owner, ClaimKind::Removal));
            // A worktree that cannot be examined or removed is needed.
            let _ = remove_if(self.engine, &mut registry, &size.owner, environment, is_unchanged);
            let is_left = registry.worktree(&size.owner)?.is_some_and(|stored| stored.is_present());
            if is_left {
                next += 1;
            } else {
                sizes.remove(next);
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
}

fn sizes(registry: &mut Registry) -> Result<Vec<WorktreeSize>> {
    let present = registry.present_worktrees()?;
    let size = |worktree: StoredWorktree| WorktreeSize {
        bytes: size_of(&worktree),
        owner: worktree.owner,
        path: worktree.path,
    };
    Ok(present.into_iter().filter(StoredWorktree::is_present).map(size).collect())
}

/// As measured at the end of its last task; while one works in it, of its files now.
pub(crate) fn size_of(worktree: &StoredWorktree) -> u64 {
    worktree.bytes.unwrap_or_else(|| disk_usage(Path::new(&worktree.path)))
}
