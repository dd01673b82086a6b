//! The list of all worktrees with what is in each, and the removal of those of which nothing would be lost.

use std::path::PathBuf;

use delegator_domain::task::TaskId;
use delegator_registry::{Registry, StoredWorktree};
use delegator_supervisor::agent::Variables;

use crate::Changes;
use crate::error::Result;
use crate::results::groups::DiffSize;
use crate::upkeep::rescue::rescue_in;
use crate::worktrees::content::{WorktreeContent, examine, remove_if};
use crate::worktrees::plan::WorktreePlan;
use crate::worktrees::quota::size_of;

#[derive(Debug)]
pub struct ListedWorktree {
    pub owner: TaskId,
    pub title: String,
    pub path: PathBuf,
    pub branch: String,
    /// The top of the work tree from which it was created.
    pub repository: PathBuf,
    /// When its task was submitted.
    pub submitted_at_ms: i64,
    pub bytes: u64,
    pub is_applied: bool,
    /// A task that works in it, or will.
    pub used_by: Option<TaskId>,
    /// The error is why it could not be compared.
    pub content: Result<WorktreeContent, String>,
    /// What its diff changes, if it could be compared.
    pub changes: Option<DiffSize>,
}

impl ListedWorktree {
    pub fn is_removable(&self) -> bool {
        self.used_by.is_none() && self.content.as_ref().is_ok_and(|content| content.is_removable())
    }

    fn read(registry: &Registry, stored: StoredWorktree, environment: &Variables) -> Result<ListedWorktree> {
        let task = registry.get(&stored.owner)?;
        let used_by = registry.live_tasks_in_worktree(&stored.owner)?.into_iter().next();
        let plan = WorktreePlan::of_stored(&stored)?;
        let (content, changes) = match examine(registry, &stored.owner, environment) {
            Ok((content, changes)) => {
                let size = changes.too_large.is_none().then(|| DiffSize::of(&changes.diff));
                (Ok(content), size)
            }
            Err(error) => (Err(error.to_string()), None),
        };
        Ok(ListedWorktree {
            title: task.as_ref().map(|task| task.title.clone()).unwrap_or_default(),
            path: plan.worktree.path,
            branch: plan.worktree.branch,
            repository: plan.worktree.source.repository.top_level,
            submitted_at_ms: task.map_or(0, |task| task.created_at_ms),
            bytes: size_of(&stored),
            is_applied: stored.applied_at_ms.is_some(),
            owner: stored.owner,
            used_by,
            content,
            changes,
        })
    }
}

impl Changes<'_> {
    /// All worktrees that are not removed, the oldest first. Each is compared, which may take seconds.
    pub fn worktrees(&self, environment: &Variables) -> Result<Vec<ListedWorktree>> {
        let Some(mut registry) = self.engine.find_registry()? else { return Ok(Vec::new()) };
        rescue_in(self.engine, &mut registry)?;
        let stored = registry.present_worktrees()?.into_iter();
        let listed = stored.map(|stored| ListedWorktree::read(&registry, stored, environment));
        listed.collect()
    }

    /// Removes a worktree if nothing would be lost and no task uses it. Returns whether it did: it may have
    /// changed since it was listed.
    pub fn remove_if_not_needed(&self, owner: &TaskId, environment: &Variables) -> Result<bool> {
        let mut registry = self.engine.registry_of(owner)?;
        remove_if(self.engine, &mut registry, owner, environment, WorktreeContent::is_removable)
    }
}
