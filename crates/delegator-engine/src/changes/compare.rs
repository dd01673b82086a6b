//! The difference between the results of two tasks that began with the same files.

use std::time::Duration;

use delegator_git::{ApplyError, DiffText, ResultComparison};
use delegator_registry::Task;
use delegator_supervisor::agent::Variables;

use super::worktrees::plan_of;
use crate::Changes;
use crate::error::{EngineError, IsolationError, Result};
use crate::shared::git_program::git;
use crate::supervise::task_diff::{DiffSource, TaskDiff, recorded_diff};
use crate::worktrees::plan::WorktreePlan;

const TIMEOUT: Duration = Duration::from_secs(60);

impl Changes<'_> {
    /// What leads from the result of `other` to that of `task`. Each must have ended in a worktree of its own.
    pub fn diff_against(&self, task: &Task, other: &Task, environment: &Variables) -> Result<TaskDiff> {
        let refused =
            |reason| IsolationError::NotComparable { task: task.id.clone(), other: other.id.clone(), reason };
        let (Some(owner), Some(other_owner)) = (&task.worktree, &other.worktree) else {
            return Err(refused("one of them had no worktree").into());
        };
        if owner == other_owner {
            return Err(refused("both worked in one worktree").into());
        }
        let (plan, own) = self.result_of(task, environment)?;
        let (other_plan, others) = self.result_of(other, environment)?;
        let git = git(environment, &plan.worktree.source.repository.top_level, TIMEOUT)?;
        let dir = self.engine.registry_of(&task.id)?.dir().task(&task.id);
        let mut omissions = own.omissions;
        omissions.left_out.extend(others.omissions.left_out);
        omissions.left_out.sort_by(|one, other| one.path.cmp(&other.path));
        omissions.left_out.dedup_by(|one, other| one.path == other.path);
        let counts = [omissions.left_out_count, others.omissions.left_out_count, omissions.left_out.len()];
        omissions.left_out_count = counts.into_iter().max().unwrap_or(0);
        omissions.size_limit = omissions.size_limit.or(others.omissions.size_limit);
        let against = (&other_plan.worktree, others.text.as_slice());
        let compared = plan.worktree.compare_results(&own.text, against, &git, dir.path());
        let compared = compared.map_err(ApplyError::from)?;
        let text = match compared {
            ResultComparison::Diff(DiffText::Complete(text)) => text,
            ResultComparison::Diff(DiffText::TooLarge(limit)) => {
                omissions.size_limit = Some(limit);
                Vec::new()
            }
            ResultComparison::OtherStart => {
                return Err(refused("they did not begin with the same files").into());
            }
            ResultComparison::StartGone => {
                return Err(refused("the files with which they began are not stored any more").into());
            }
        };
        let text = self.mask_secrets(&other.id, self.mask_secrets(&task.id, text)?)?;
        Ok(TaskDiff { text, omissions, source: DiffSource::OtherTask, ..TaskDiff::default() })
    }

    fn result_of(&self, task: &Task, environment: &Variables) -> Result<(WorktreePlan, TaskDiff)> {
        let owner = task.worktree.as_ref().unwrap_or(&task.id);
        let registry = self.engine.registry_of(&task.id)?;
        let busy = registry.live_tasks_in_worktree(owner)?.into_iter().next();
        if let Some(state) = busy.map(|id| registry.get(&id)).transpose()?.flatten().map(|busy| busy.state) {
            return Err(EngineError::NotEnded { task: task.id.clone(), state });
        }
        Ok((plan_of(&registry, owner)?, recorded_diff(&registry, task, environment)?))
    }
}
