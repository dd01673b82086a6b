//! Submits a task, or several attempts at it, with their followers.
//!
//! All checks come before the rows are written. From then on the task exists: a failed start is not reported
//! as an error, because the caller would submit the task again.

use std::path::{Path, PathBuf};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{GroupId, GroupMember, Mode, TaskId, TaskLocation};
use delegator_git::LeftOut;
use delegator_registry::{AgentPause, BlockedBy, Claim, NewTask, Registry, Task};

use super::budget_use::check_budgets;
use super::chain::{ChainTask, chain_of, launch_of};
use super::launch_file::Settings;
use super::promote::{promote, start_all, with_promotion};
use super::submission::Submission;
use super::worktree::{isolate_attempts, remove_starts};
use crate::error::{EngineError, Result};
use crate::shared::allowed_paths::{resolve_allowed_dir, resolve_allowed_file};
use crate::shared::connection_pool::PooledConnection;
use crate::shared::estimate::{DurationHistory, ExpectedDuration};
use crate::shared::notifications::task_notify;
use crate::{Engine, Submissions};

#[derive(Debug)]
pub struct SubmitOutcome {
    pub task: Task,
    pub replayed: bool,
    /// The agent has threads, so the task gets a thread id once it runs.
    pub has_thread: bool,
    /// 0: the task has a slot; 1: it is next.
    pub queue_position: u64,
    /// What a queued task waits for beyond a free slot.
    pub waiting_for: Option<BlockedBy>,
    pub queue_paused: bool,
    pub agent_pause: Option<AgentPause>,
    pub estimated_start_ms: Option<u64>,
    pub expected: Option<ExpectedDuration>,
    /// All tasks that follow it, directly or not.
    pub followers: Vec<Task>,
    pub worktree: Option<PathBuf>,
    /// Uncommitted changes of the user that are not in the worktree.
    pub not_carried: Vec<LeftOut>,
    /// If it is the first of several attempts, all of them.
    pub attempts: Vec<Task>,
}

struct StoredSubmission {
    submitted: delegator_registry::Submission,
    worktree: Option<PathBuf>,
    not_carried: Vec<LeftOut>,
}

impl Submissions<'_> {
    pub fn submit(&self, submission: Submission) -> Result<SubmitOutcome> {
        self.submit_attempts(vec![submission])
    }

    /// All or none, from the same commit and uncommitted changes; several become a group. Returns the first.
    pub fn submit_attempts(&self, mut attempts: Vec<Submission>) -> Result<SubmitOutcome> {
        for submission in &mut attempts {
            self.check_and_resolve(submission)?;
        }
        let (mut registry, submitted, claims) =
            self.engine.system.with_fresh_id(TaskLocation::Local, |id| self.store(attempts.clone(), id))?;
        // The task exists: from here on errors are left to the next upkeep pass, which also starts the task.
        let _ = if submitted.submitted.replayed {
            promote(self.engine, &mut registry)
        } else {
            start_all(self.engine, &mut registry, claims)
        };
        let _ = registry.remove_dead_submits();
        crash_point(CrashPoint::BeforeResponse);
        let has_thread = attempts.first().is_some_and(|first| first.agent.capabilities().threads);
        self.submit_outcome(&registry, submitted, has_thread)
    }

    /// Checks a submission and its followers, and resolves their directories and files.
    fn check_and_resolve(&self, submission: &mut Submission) -> Result<()> {
        let requested = submission.settings.run.mode;
        if requested > submission.max_mode {
            return Err(EngineError::ModeTooWide { requested, allowed: submission.max_mode });
        }
        for submission in submission.per_agent() {
            submission.check_capabilities()?;
            submission.check_variables()?;
        }
        submission.nesting.check_depth(submission.settings.depth)?;
        let settings = &mut submission.settings;
        settings.run.working_dir =
            checked_directory("working_dir", &settings.run.working_dir, &settings.allowed_roots)?;
        for directory in &mut settings.run.add_dirs {
            *directory = checked_directory("add_dirs", directory, &settings.allowed_roots)?;
        }
        refuse_reserved_directories(settings, &self.engine.state_dir)?;
        submission.check_rights()?;
        let settings = &mut submission.settings;
        check_budgets(self.engine, settings)?;
        for image in &mut settings.run.images {
            *image = resolve_allowed_file("images", image, &settings.allowed_roots, &self.engine.state_dir)?;
        }
        submission
            .followers
            .iter_mut()
            .try_for_each(|follower| self.check_and_resolve(&mut follower.submission))
    }

    /// The caller must start the claimed tasks.
    fn store(
        &self,
        mut attempts: Vec<Submission>,
        first: TaskId,
    ) -> Result<(PooledConnection, StoredSubmission, Vec<Claim>)> {
        let mut registry = self.engine.open_registry()?;
        let group = match attempts.len() {
            1 => None,
            _ => Some(GroupId::from_random(self.engine.system.random_bytes()?)),
        };
        let mut ids = vec![first];
        while ids.len() < attempts.len() {
            ids.push(TaskId::from_random(TaskLocation::Local, self.engine.system.random_bytes()?));
        }
        let (not_carried, claim) = isolate_attempts(self.engine, &mut attempts, &ids, &registry)?;
        let stored = self.store_attempts(&mut registry, &attempts, &ids, group.as_ref());
        drop(claim);
        if !stored.as_ref().is_ok_and(|(submitted, _)| !submitted.replayed) {
            remove_starts(&attempts, &ids);
        }
        let (submitted, claims) = stored?;
        let plan = attempts.first().and_then(|first| first.settings.worktree.as_ref());
        let worktree = plan.map(|plan| plan.worktree.path.clone());
        Ok((registry, StoredSubmission { submitted, worktree, not_carried }, claims))
    }

    fn store_attempts(
        &self,
        registry: &mut Registry,
        attempts: &[Submission],
        ids: &[TaskId],
        group: Option<&GroupId>,
    ) -> Result<(delegator_registry::Submission, Vec<Claim>)> {
        let mut tasks = Vec::new();
        for ((submission, id), attempt) in attempts.iter().zip(ids).zip(1..) {
            let member = group.map(|group| GroupMember { group: group.clone(), attempt });
            let first = ChainTask { id: id.clone(), submission, follows: None, group: member };
            tasks.extend(chain_of(self.engine, first)?);
        }
        if let Some(first) = attempts.first() {
            first.nesting.check_children(registry, tasks.len())?;
        }
        let mut stored = Vec::new();
        for task in &tasks {
            let launch = launch_of(self.engine, task)?;
            registry.also_redact(launch.redactor());
            let notify = task_notify(self.engine)?;
            stored.push((NewTask { notify, ..task.new_task(&launch)? }, launch.to_bytes()?));
        }
        with_promotion(self.engine, |promotion| {
            Ok(registry.submit_and_claim(&stored, promotion, self.engine.now_ms())?)
        })
    }

    fn submit_outcome(
        &self,
        registry: &Registry,
        StoredSubmission { submitted, worktree, not_carried }: StoredSubmission,
        has_thread: bool,
    ) -> Result<SubmitOutcome> {
        let task = registry.get(&submitted.task.id)?.unwrap_or(submitted.task);
        let position = registry.queue_position(&task.id)?;
        let is_queued = position.is_some();
        let queue_paused = is_queued && registry.queue_paused()?;
        let agent_pause = if is_queued { agent_pause(self.engine, registry, &task)? } else { None };
        let history = DurationHistory::of_dir(registry, &task.working_dir)?;
        let waiting_for = if is_queued { registry.blocked_by_running(&task)? } else { None };
        let estimated_start_ms = match (&history, position) {
            // The start of a task that also waits for something else cannot be estimated.
            (Some(history), Some(position))
                if !queue_paused && agent_pause.is_none() && waiting_for.is_none() =>
            {
                let position = usize::try_from(position).unwrap_or(usize::MAX);
                let starts = history.start_times(registry, self.engine, position.saturating_add(1))?;
                starts.get(position).copied()
            }
            _ => None,
        };
        Ok(SubmitOutcome {
            has_thread,
            queue_position: position.map_or(0, |position| position + 1),
            waiting_for,
            queue_paused,
            agent_pause,
            estimated_start_ms,
            expected: history.filter(|_| !task.state.is_terminal()).map(|history| history.expected()),
            replayed: submitted.replayed,
            followers: registry.rest_of_chain(&task.id)?,
            worktree,
            not_carried,
            attempts: match &task.group {
                Some(member) => registry.group(&member.group)?,
                None => Vec::new(),
            },
            task,
        })
    }
}

pub(crate) fn agent_pause(engine: &Engine, registry: &Registry, task: &Task) -> Result<Option<AgentPause>> {
    let pauses = registry.agent_pauses(engine.now_ms())?;
    Ok(pauses.into_iter().find(|pause| pause.agent == task.agent))
}

/// A task that can write to the state directory or to the user's configuration could grant itself every
/// right. Modes without a sandbox can write anywhere; only the user's configuration allows them.
fn refuse_reserved_directories(settings: &Settings, state_dir: &Path) -> Result<()> {
    if settings.run.mode != Mode::WorkspaceWrite {
        return Ok(());
    }
    let added = settings.run.add_dirs.iter().map(|directory| ("add_dirs", directory));
    for (input, directory) in [("working_dir", &settings.run.working_dir)].into_iter().chain(added) {
        if let Some(own) = settings.reserved_overlap(directory, state_dir) {
            return Err(EngineError::ReservedDirectory { input, path: directory.clone(), own });
        }
    }
    Ok(())
}

fn checked_directory(input: &'static str, path: &Path, roots: &[PathBuf]) -> Result<PathBuf> {
    resolve_allowed_dir(path, roots).map_err(|problem| EngineError::UnusableDirectory {
        input,
        path: path.to_owned(),
        problem,
    })
}
