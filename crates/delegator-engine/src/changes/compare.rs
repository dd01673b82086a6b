//! The difference between the results of two tasks that began at the same commit.

use std::path::Path;
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_git::{CommitDiff, DiffText, compare_diffs};
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
    /// What leads from the result of `other` to that of `task`. Both must have ended, in worktrees of one commit.
    pub fn diff_against(&self, task: &Task, other: &Task, environment: &Variables) -> Result<TaskDiff> {
        let (plan, own) = self.result_of(task, environment)?;
        let (other_plan, others) = self.result_of(other, environment)?;
        let (source, other_source) = (&plan.worktree.source, &other_plan.worktree.source);
        if source.commit != other_source.commit {
            return Err(
                IsolationError::DifferentBase { task: task.id.clone(), other: other.id.clone() }.into()
            );
        }
        let work_tree: &Path = &source.repository.top_level;
        let git = git(environment, work_tree, TIMEOUT)?;
        let registry = self.engine.registry_of(&task.id)?;
        let to = CommitDiff { text: &own.text, store: &plan.worktree.store };
        let from = CommitDiff { text: &others.text, store: &other_plan.worktree.store };
        let dir = registry.dir().task(&task.id);
        let mut omissions = own.omissions;
        omissions.left_out.extend(others.omissions.left_out);
        omissions.left_out_count += others.omissions.left_out_count;
        omissions.size_limit = omissions.size_limit.or(others.omissions.size_limit);
        let text = match compare_diffs(&git, work_tree, &source.commit, (from, to), dir.path())? {
            DiffText::Complete(text) => text,
            DiffText::TooLarge(limit) => {
                omissions.size_limit = Some(limit);
                Vec::new()
            }
        };
        let text = self.mask_secrets(&other.id, self.mask_secrets(&task.id, text)?)?;
        Ok(TaskDiff { text, omissions, source: DiffSource::OtherTask, ..TaskDiff::default() })
    }

    fn result_of(&self, task: &Task, environment: &Variables) -> Result<(WorktreePlan, TaskDiff)> {
        let id: &TaskId = &task.id;
        if !task.state.is_terminal() {
            return Err(EngineError::NotEnded { task: id.clone(), state: task.state });
        }
        let owner = task.worktree.as_ref().ok_or_else(|| IsolationError::NotIsolated { task: id.clone() })?;
        let registry = self.engine.registry_of(id)?;
        Ok((plan_of(&registry, owner)?, recorded_diff(&registry, task, environment)?))
    }
}
