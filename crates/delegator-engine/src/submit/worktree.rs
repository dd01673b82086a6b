//! Decides at submission in which worktree an isolated task works, and refuses what cannot become one. The
//! base commit and the user's uncommitted changes are those at submission, however long the task is queued.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::submission::{Isolation, Submission, WorktreeRequest};
use crate::Engine;
use crate::error::{EngineError, IsolationError, Result};
use crate::shared::directories::remove_directory;
use crate::shared::format_version::FormatVersion;
use crate::shared::git_program::git;
use crate::worktrees::plan::{BRANCH_FOLDER, WorktreePlan};
use crate::worktrees::recorded::{RecordedWorktree, WorktreeState, claim_worktree};
use delegator_domain::task::TaskId;
use delegator_git::{Git, LeftOut, Limits, TaskWorktree, find_source};
use delegator_registry::{ClaimKind, Registry, Task, WorktreeClaim};
use delegator_supervisor::agent::Variables;

/// For finding the repository and storing uncommitted changes.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(60);
/// Uncommitted files that are larger are not carried.
const CARRY_LIMITS: Limits =
    Limits { file_bytes: 100 << 20, total_bytes: 1 << 30, time: Duration::from_secs(30) };

impl Submission {
    fn work_in(&mut self, plan: &WorktreePlan) {
        let settings = &mut self.settings;
        let directory = plan.directory_for(&settings.run.working_dir);
        let user_dir = std::mem::replace(&mut settings.run.working_dir, directory);
        if !settings.allowed_roots.is_empty() {
            settings.allowed_roots.push(plan.worktree.path.clone());
        }
        settings.worktree = Some(WorktreePlan { user_dir, ..plan.clone() });
        self.followers.iter_mut().for_each(|follower| follower.submission.work_in(plan));
    }
}

/// A directory of all worktrees, beside the state directory: agents may not read that.
fn beside_state_dir(engine: &Engine, suffix: &str) -> PathBuf {
    let mut name = engine.state_dir.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    engine.state_dir.with_file_name(name)
}

/// Makes the submission and its followers work in one worktree, if it is isolated. Returns the changes of
/// the user that are not in a new worktree, and the claim on an existing one, which the caller holds
/// until the task is stored.
pub(super) fn isolate(
    engine: &Engine,
    submission: &mut Submission,
    id: &TaskId,
    registry: &Registry,
) -> Result<(Vec<LeftOut>, Option<WorktreeClaim>)> {
    let mut claim = None;
    let (plan, not_carried) = match &submission.isolation {
        Isolation::None => return Ok((Vec::new(), None)),
        Isolation::New(request) => plan_worktree(engine, submission, request, id)?,
        Isolation::Of(owner) => {
            claim = Some(claim_worktree(engine, registry, owner, ClaimKind::Use)?);
            existing_plan(registry, owner, &submission.environment)?
        }
    };
    submission.work_in(&plan);
    Ok((not_carried, claim))
}

/// Makes several attempts work in worktrees of their own that start from the same state, or the only one
/// as it says. Returns the same as [`isolate`].
pub(super) fn isolate_attempts(
    engine: &Engine,
    attempts: &mut [Submission],
    ids: &[TaskId],
    registry: &Registry,
) -> Result<(Vec<LeftOut>, Option<WorktreeClaim>)> {
    let Some(((first, others), (id, other_ids))) = attempts.split_first_mut().zip(ids.split_first()) else {
        return Ok((Vec::new(), None));
    };
    let isolated = isolate(engine, first, id, registry)?;
    let Some(plan) = first.settings.worktree.clone() else { return Ok(isolated) };
    for (submission, id) in others.iter_mut().zip(other_ids) {
        let attempt = plan.for_attempt(id);
        let copied = copy_start(&plan.worktree.store, &attempt.worktree.store);
        submission.work_in(&attempt);
        if let Err(error) = copied {
            remove_starts(attempts, ids);
            return Err(EngineError::io("copy the uncommitted changes")(error));
        }
    }
    Ok(isolated)
}

fn plan_worktree(
    engine: &Engine,
    submission: &Submission,
    request: &WorktreeRequest,
    id: &TaskId,
) -> Result<(WorktreePlan, Vec<LeftOut>)> {
    let working_dir = &submission.settings.run.working_dir;
    let git = git(&submission.environment, working_dir, SUBMIT_TIMEOUT)?;
    let dir = create_directory(beside_state_dir(engine, "-worktrees"))?;
    let git_dir = create_directory(beside_state_dir(engine, "-worktree-git"))?;
    let worktree = TaskWorktree {
        source: find_source(&git, working_dir, request.base.as_deref(), BRANCH_FOLDER)?,
        path: dir.join(id.as_str()),
        branch: format!("{BRANCH_FOLDER}/{id}"),
        store: dir.join(format!("{id}.start")),
        private_dir: Some(git_dir.join(id.as_str())),
    };
    let not_carried = if request.carry_dirty { carry(&worktree, &git)? } else { Vec::new() };
    let plan = WorktreePlan {
        version: FormatVersion,
        owner: id.clone(),
        user_dir: working_dir.clone(),
        worktree,
        copy: request.copy.clone(),
        setup: request.setup.clone(),
    };
    Ok((plan, not_carried))
}

/// Stores the user's uncommitted changes for a worktree. Returns those that it does not get.
fn carry(worktree: &TaskWorktree, git: &Git) -> Result<Vec<LeftOut>> {
    delegator_registry::make_private_path(&worktree.store)
        .map_err(EngineError::io("create the directory for uncommitted changes"))?;
    let carried = worktree.carry(git, CARRY_LIMITS, &worktree.store);
    if carried.is_err() {
        let _ = remove_directory(&worktree.store);
    }
    Ok(carried.map_err(delegator_git::WorktreeError::from)?)
}

/// The worktree of another task. One that was removed because nothing had changed in it is created again by
/// the supervisor, with the uncommitted changes of now if it had some.
fn existing_plan(
    registry: &Registry,
    owner: &TaskId,
    environment: &Variables,
) -> Result<(WorktreePlan, Vec<LeftOut>)> {
    let gone = || IsolationError::Gone { task: owner.clone() };
    let plan = WorktreePlan::of_stored(&registry.worktree(owner)?.ok_or_else(gone)?)?;
    match RecordedWorktree::read(registry, owner)?.map(|found| found.state) {
        Some(WorktreeState::Planned | WorktreeState::Present) => return Ok((plan, Vec::new())),
        Some(WorktreeState::Unchanged) => {}
        _ => return Err(gone().into()),
    }
    let has_carried = |task: Task| task.input.get("carry_dirty") == Some(&true.into());
    if !registry.get(owner)?.is_some_and(has_carried) {
        return Ok((plan, Vec::new()));
    }
    let git = git(environment, &plan.worktree.source.repository.top_level, SUBMIT_TIMEOUT)?;
    let not_carried = carry(&plan.worktree, &git)?;
    Ok((plan, not_carried))
}

/// Creates a directory for all worktrees. git reports real paths.
fn create_directory(dir: PathBuf) -> Result<PathBuf> {
    delegator_registry::make_private_path(&dir)
        .and_then(|()| dir.canonicalize())
        .map_err(EngineError::io("create the directory for worktrees"))
}

/// Removes the stored start states of submissions that did not become tasks.
pub(super) fn remove_starts(attempts: &[Submission], ids: &[TaskId]) {
    let plans = attempts.iter().filter_map(|submission| submission.settings.worktree.as_ref());
    for plan in plans.filter(|plan| ids.contains(&plan.owner)) {
        let _ = remove_directory(&plan.worktree.store);
    }
}

/// Its files are never changed, so they are linked where that is possible.
fn copy_start(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    delegator_registry::make_private_path(to)?;
    for entry in entries {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_start(&source, &target)?;
        } else if fs::hard_link(&source, &target).is_err() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
