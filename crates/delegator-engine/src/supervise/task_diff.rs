//! The diff of a task that wrote: between its restore points and the states after it, or the present state
//! while it runs; in a worktree everything since its creation. The diff of a task that a provider ran, and of
//! a removed worktree, is stored. Changes nothing and queries no provider.

use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_git::{
    DiffPaths, DiffText, LeftOut, RestoreError, RestorePoint, TreeDiff, diff_of_task, diff_until_now,
};
use delegator_registry::{Registry, Task, TaskFile};
use delegator_supervisor::agent::Variables;

use super::evidence::Source;
use super::task_report::Record;
use crate::error::{EngineError, NoDiff, Result};
use crate::restore_points::lookup::{FoundPoints, PointSource};
use crate::shared::git_program::git;
use crate::worktrees::recorded::{DiffOmissions, RecordedWorktree, WorktreeState, worktree_changes};

const DIFF_TIMEOUT: Duration = Duration::from_secs(60);
/// Files that `omissions` names; all are counted.
const MAX_NAMED: usize = 100;

#[derive(Debug, Default)]
pub struct TaskDiff {
    /// A unified diff with full object ids and binary contents; empty if nothing changed. Paths are relative
    /// to the top of the work tree of the task's working directory; those in other work trees are absolute.
    pub text: Vec<u8>,
    pub omissions: DiffOmissions,
    pub source: DiffSource,
    /// Changed files that are not in the diff, because nothing attributes them to the agent.
    pub unattributed: Vec<String>,
    /// Work trees whose changes are unknown, with the reason.
    pub unavailable: Vec<(PathBuf, String)>,
    /// Files in which the diff also has what the setup of the worktree changed.
    pub with_setup_edits: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DiffSource {
    /// The work trees of the user before and after the task.
    #[default]
    InPlace,
    /// Before the task and now, because it has not ended. Changes of others are included.
    InProgress,
    /// Before the task and when the loss of its supervisor was noticed. Changes of others are included.
    Late,
    /// The worktree of the task since it was created.
    Worktree,
    Remote,
    /// The results of two tasks.
    OtherTask,
}

/// What a task changed, as it is recorded and stored here.
pub(crate) fn recorded_diff(registry: &Registry, task: &Task, environment: &Variables) -> Result<TaskDiff> {
    if task.remote.is_some() {
        let text = registry.dir().task(&task.id).read(TaskFile::Diff)?.unwrap_or_default();
        return Ok(TaskDiff { text, source: DiffSource::Remote, ..TaskDiff::default() });
    }
    if let Some(owner) = &task.worktree {
        return diff_in_worktree(registry, task, owner, environment);
    }
    if task.may_write() { diff_in_place(registry, task, environment) } else { Ok(TaskDiff::default()) }
}

fn diff_in_worktree(
    registry: &Registry,
    task: &Task,
    owner: &TaskId,
    environment: &Variables,
) -> Result<TaskDiff> {
    let worktree = RecordedWorktree::read(registry, owner)?;
    let is_planned = worktree.is_none_or(|found| found.state == WorktreeState::Planned);
    if is_planned && !task.state.is_terminal() {
        return Err(EngineError::NotEnded { task: task.id.clone(), state: task.state });
    }
    let changes = worktree_changes(registry, owner, environment)?.refuse_lost(&task.id)?;
    Ok(TaskDiff {
        omissions: changes.omissions(),
        source: DiffSource::Worktree,
        text: changes.diff,
        with_setup_edits: changes.with_setup_edits,
        ..TaskDiff::default()
    })
}

fn diff_in_place(registry: &Registry, task: &Task, environment: &Variables) -> Result<TaskDiff> {
    let working_dir = Path::new(&task.working_dir);
    let source = PointSource { registry: Some(registry), environment, here: working_dir };
    let found = source.find(&task.id)?;
    let is_running = !task.state.is_terminal();
    if found.record.points.is_empty() {
        return if is_running {
            Err(EngineError::NotEnded { task: task.id.clone(), state: task.state })
        } else {
            without_points(registry, task, &found)
        };
    }
    let mut trees = TreeDiffs::of_task(&task.id, is_running);
    let problems = found.record.problems.iter();
    trees.diff.unavailable.extend(problems.map(|entry| (entry.path.clone(), entry.problem.clone())));
    for point in &found.record.points {
        let paths = if trees.is_first { DiffPaths::Relative } else { DiffPaths::Absolute };
        let git = git(environment, &point.top_level, DIFF_TIMEOUT)?;
        let temp_dir = found.scratch.path();
        let tree = if is_running {
            diff_until_now(&git, point, paths, temp_dir).map(Some)
        } else {
            diff_of_task(&git, point, paths, temp_dir)
        };
        trees.add(point, tree)?;
    }
    match trees.finish() {
        Err(error @ EngineError::NoDiff { .. }) => late_diff(registry, task)?.ok_or(error),
        finished => finished,
    }
}

/// What was stored when the loss of the task's supervisor was noticed.
fn late_diff(registry: &Registry, task: &Task) -> Result<Option<TaskDiff>> {
    let dir = registry.dir().task(&task.id);
    let Some(text) = dir.read(TaskFile::Diff)? else { return Ok(None) };
    let evidence = Record::read(&dir)?.and_then(|record| record.evidence);
    let omissions = evidence.map(|evidence| DiffOmissions {
        left_out: evidence.left_out,
        left_out_count: evidence.left_out_count,
        size_limit: None,
    });
    let omissions = omissions.unwrap_or_default();
    Ok(Some(TaskDiff { text, omissions, source: DiffSource::Late, ..TaskDiff::default() }))
}

/// An ended task without restore points: either it changed nothing, or its changes cannot be compared.
fn without_points(registry: &Registry, task: &Task, found: &FoundPoints) -> Result<TaskDiff> {
    let evidence = Record::read(&registry.dir().task(&task.id))?.and_then(|record| record.evidence);
    let Some(evidence) = evidence.filter(|evidence| evidence.attributed.files() > 0) else {
        return Ok(TaskDiff::default());
    };
    let reason = match (found.record.problems.first(), evidence.source) {
        (Some(entry), _) => NoDiff::NoRestorePoint { problem: entry.problem.clone() },
        (None, Source::Git | Source::Late) => NoDiff::PointDeleted,
        (None, Source::Scan | Source::Diff) => {
            NoDiff::NotInGit { directory: task.working_dir.clone().into() }
        }
    };
    Err(EngineError::NoDiff { task: task.id.clone(), reason })
}

struct TreeDiffs {
    task: TaskId,
    diff: TaskDiff,
    is_first: bool,
    /// At least one work tree could be compared.
    has_tree: bool,
    first_problem: Option<NoDiff>,
}

impl TreeDiffs {
    fn of_task(task: &TaskId, is_running: bool) -> TreeDiffs {
        let source = if is_running { DiffSource::InProgress } else { DiffSource::InPlace };
        let diff = TaskDiff { source, ..TaskDiff::default() };
        TreeDiffs { task: task.clone(), diff, is_first: true, has_tree: false, first_problem: None }
    }

    /// Adds a work tree; `None` stands for one whose state after the task is not stored.
    fn add(&mut self, point: &RestorePoint, tree: Result<Option<TreeDiff>, RestoreError>) -> Result<()> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        let problem = match tree {
            Ok(Some(tree)) => {
                self.has_tree = true;
                let prefix = if is_first { Path::new("") } else { &point.top_level };
                self.diff.add(prefix, tree);
                return Ok(());
            }
            Ok(None) => NoDiff::NoEndState,
            Err(RestoreError::PointMissing { .. }) => NoDiff::PointDeleted,
            Err(
                error @ (RestoreError::DifferentRepository { .. } | RestoreError::UnreadableEndState { .. }),
            ) => NoDiff::Unreadable { problem: error.to_string() },
            Err(error) => return Err(error.into()),
        };
        self.diff.unavailable.push((point.top_level.clone(), problem.to_string()));
        self.first_problem.get_or_insert(problem);
        Ok(())
    }

    fn finish(self) -> Result<TaskDiff> {
        match self.first_problem {
            Some(reason) if !self.has_tree => Err(EngineError::NoDiff { task: self.task, reason }),
            _ => Ok(self.diff),
        }
    }
}

impl TaskDiff {
    fn add(&mut self, prefix: &Path, tree: TreeDiff) {
        let name = |path: &str| prefix.join(path).display().to_string();
        match tree.diff {
            DiffText::Complete(text) => self.text.extend(text),
            DiffText::TooLarge(limit) => self.omissions.size_limit = Some(limit),
        }
        self.unattributed.extend(tree.unattributed.iter().map(|path| name(path)));
        self.omissions.left_out_count += tree.left_out.len();
        let space = MAX_NAMED.saturating_sub(self.omissions.left_out.len());
        let named = tree.left_out.into_iter().take(space);
        let named = named.map(|file| LeftOut { path: name(&file.path), ..file });
        self.omissions.left_out.extend(named);
    }
}
