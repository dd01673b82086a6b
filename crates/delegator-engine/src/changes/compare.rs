//! The difference between the results of two tasks that began with the same files: two attempts, or two tasks of one
//! worktree.

use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_git::{ApplyError, DiffText, ResultComparison};
use delegator_registry::{Registry, Task, TaskFile};
use delegator_supervisor::agent::Variables;

use super::worktrees::plan_of;
use crate::Changes;
use crate::error::{EngineError, IsolationError, Result};
use crate::shared::git_program::git;
use crate::supervise::task_diff::{DiffSource, TaskDiff, recorded_diff};
use crate::worktrees::plan::WorktreePlan;

const TIMEOUT: Duration = Duration::from_secs(60);

impl Changes<'_> {
    /// What leads from the result of `other` to that of `task`. Each must have worked in a worktree, and have ended.
    pub fn diff_against(&self, task: &Task, other: &Task, environment: &Variables) -> Result<TaskDiff> {
        let refused =
            |reason| IsolationError::NotComparable { task: task.id.clone(), other: other.id.clone(), reason };
        let (Some(owner), Some(other_owner)) = (&task.worktree, &other.worktree) else {
            return Err(refused("one of them had no worktree").into());
        };
        if owner == other_owner {
            let registry = self.engine.registry_of(&task.id)?;
            let (earlier, later) = if task.seq < other.seq { (task, other) } else { (other, task) };
            let next = next_start(&registry, owner, earlier)?;
            if next.is_none_or(|(id, _)| {
                registry.get(&id).ok().flatten().is_none_or(|next| next.seq > later.seq)
            }) {
                return Err(refused("what the earlier one left in their worktree is not stored").into());
            }
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
        if let Some((_, text)) = next_start(&registry, owner, task)? {
            return Ok((plan_of(&registry, owner)?, TaskDiff { text, ..TaskDiff::default() }));
        }
        // What the task itself has changed so far is its result for now.
        let busy = registry.live_tasks_in_worktree(owner)?.into_iter().find(|busy| *busy != task.id);
        if let Some(state) = busy.map(|id| registry.get(&id)).transpose()?.flatten().map(|busy| busy.state) {
            return Err(EngineError::NotEnded { task: task.id.clone(), state });
        }
        Ok((plan_of(&registry, owner)?, recorded_diff(&registry, task, environment)?))
    }

    /// The task that wrote in the worktree before this one: its result is what was reviewed when this one was requested.
    pub fn reviewed_before(&self, task: &Task) -> Result<Option<TaskId>> {
        let Some(owner) = task.worktree.as_ref().filter(|owner| **owner != task.id) else { return Ok(None) };
        let registry = self.engine.registry_of(&task.id)?;
        if !registry.dir().task(&task.id).file(TaskFile::StartDiff).exists() {
            return Ok(None);
        }
        for id in registry.tasks_in_worktree(owner)?.into_iter().rev().skip_while(|id| *id != task.id).skip(1)
        {
            if registry.get(&id)?.is_some_and(|earlier| earlier.may_write()) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}

/// The next task that began to write in the worktree, and what had changed there then.
fn next_start(registry: &Registry, owner: &TaskId, task: &Task) -> Result<Option<(TaskId, Vec<u8>)>> {
    for id in registry.tasks_in_worktree(owner)?.into_iter().skip_while(|id| *id != task.id).skip(1) {
        if let Some(text) = registry.dir().task(&id).read(TaskFile::StartDiff)? {
            return Ok(Some((id, text)));
        }
    }
    Ok(None)
}
