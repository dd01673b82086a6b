//! The diff of a task, and its application to a work tree of the user: all or nothing, and never while
//! another task may write to the tree. The state before is stored as the restore point of the task.

use std::path::Path;
use std::time::Duration;

use delegator_domain::redact::SecretDigests;
use delegator_domain::task::TaskId;
use delegator_git::{
    ApplyError, ApplyReport, ApplyRequest, Git, Recovery, RestorePoint, drop_point, prepare_diff,
    recover_interrupted,
};
use delegator_registry::{Task, TaskDir, TaskFile};
use delegator_supervisor::agent::Variables;

use super::restore::refuse_while_busy;
use crate::Changes;
use crate::error::{EngineError, Result};
use crate::remote::provider::ProviderRecord;
use crate::restore_points::record::{RestorePointRecord, reference};
use crate::shared::git_program::git;
use crate::supervise::task_diff::{TaskDiff, recorded_diff};
use crate::upkeep::rescue::rescue_in;
use crate::worktrees::recorded::DiffOmissions;

/// Long, because the files of a large diff are merged one by one.
const APPLY_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, Default)]
pub struct ApplyOptions<'a> {
    pub dry_run: bool,
    /// Also commit them, with this message.
    pub commit: Option<&'a str>,
    /// Do not remove the worktree.
    pub keep: bool,
}

#[derive(Debug, Default)]
pub struct DiffApplication {
    pub report: ApplyReport,
    /// The state before; `None` if nothing was changed.
    pub point: Option<RestorePoint>,
    pub commit: Option<String>,
    /// What became of an earlier operation in the work tree that was interrupted.
    pub recovery: Option<Recovery>,
}

impl Changes<'_> {
    /// Without the secrets that were known at its submission. If a provider made several attempts, the first.
    pub fn diff(&self, id: &TaskId, environment: &Variables) -> Result<TaskDiff> {
        let task = self.engine.results().task(id)?;
        if task.remote.is_some() && !task.state.is_terminal() {
            return Err(EngineError::NotEnded { task: task.id, state: task.state });
        }
        let diff = recorded_diff(&*self.engine.registry_of(id)?, &task, environment)?;
        if task.remote.is_some() {
            Ok(TaskDiff { omissions: self.omissions(id)?, ..diff })
        } else {
            Ok(TaskDiff { text: self.mask_secrets(id, diff.text)?, ..diff })
        }
    }

    pub(super) fn mask_secrets(&self, id: &TaskId, text: Vec<u8>) -> Result<Vec<u8>> {
        let stored = self.engine.results().read_stored(id, TaskFile::SecretDigests)?;
        if stored.is_empty() {
            return Ok(text);
        }
        let digests: SecretDigests = serde_json::from_slice(&stored).map_err(|error| EngineError::Io {
            doing: "read the digests of secrets",
            source: error.into(),
        })?;
        Ok(digests.mask(&text))
    }

    /// The provider is queried for another attempt than the first.
    pub fn remote_diff(&self, task: &Task, attempt: u8) -> Result<Vec<u8>> {
        let remote = task.remote.as_ref().and_then(|remote| Some((remote, remote.accepted.as_ref()?)));
        match remote {
            Some((remote, accepted)) if attempt > 1 => {
                let provider = remote.environment.provider;
                let diff =
                    self.engine.providers.get(provider).and_then(|service| service.diff(accepted, attempt));
                let diff = diff.map_err(EngineError::provider(provider, Some(&task.id)))?;
                Ok(diff.unwrap_or_default())
            }
            _ => self.engine.results().read_stored(&task.id, TaskFile::Diff),
        }
    }

    /// What the diff of an ended task does not have. Nothing is known about tasks of hosted Codex.
    pub fn omissions(&self, id: &TaskId) -> Result<DiffOmissions> {
        Ok(self.remote_facts(id)?.omissions)
    }

    fn remote_facts(&self, id: &TaskId) -> Result<ProviderRecord> {
        let facts = self.engine.results().task_dir(id)?.map(|dir| ProviderRecord::read(&dir)).transpose()?;
        Ok(facts.flatten().unwrap_or_default())
    }

    /// Applies a diff of an ended task to the work tree that contains `directory`; with `dry_run`, only
    /// reports what it would change. Conflicts are an error, with `dry_run` a part of the report.
    pub fn apply_diff(
        &self,
        id: &TaskId,
        diff: &[u8],
        directory: &Path,
        environment: &Variables,
        dry_run: bool,
    ) -> Result<DiffApplication> {
        let facts = self.remote_facts(id)?;
        let options = ApplyOptions { dry_run, ..ApplyOptions::default() };
        let base_commit = facts.base_commit.as_deref();
        let request = ApplyRequest { work_tree: directory, diff, base_commit, store: None };
        let applied = self.apply_text(id, request, environment, options);
        // Whether the changes are applied does not depend on the record.
        if (has_conflicts(&applied) || (applied.is_ok() && !dry_run))
            && let Ok(mut registry) = self.engine.registry_of(id)
        {
            let _ = registry.record_apply_conflict(id, applied.is_err());
        }
        applied
    }

    pub(super) fn apply_text(
        &self,
        id: &TaskId,
        request: ApplyRequest<'_>,
        environment: &Variables,
        options: ApplyOptions<'_>,
    ) -> Result<DiffApplication> {
        let mut registry = self.engine.registry_of(id)?;
        rescue_in(self.engine, &mut registry)?;
        let (dir, directory, diff) = (registry.dir().task(id), request.work_tree, request.diff);
        let git = git(environment, directory, APPLY_TIMEOUT)?;
        let reference = reference(id, 0);
        refuse_while_busy(Some(&registry), [directory])?;
        let recovery = recover_interrupted(&git, directory, &reference).map_err(ApplyError::from)?;
        let mut prepared = prepare_diff(&git, request, dir.path())?;
        let report = prepared.report.clone();
        refuse_while_busy(Some(&registry), [prepared.top_level()])?;
        let done = DiffApplication { report, recovery, ..DiffApplication::default() };
        if options.dry_run {
            return Ok(done);
        }
        let existing = options.commit.map(|message| prepared.existing_commit(message)).transpose()?.flatten();
        if existing.is_some() {
            return Ok(DiffApplication { commit: existing, ..done });
        }
        let commit = options.commit.map(|message| prepared.plan_commit(diff, message)).transpose()?;
        let point = prepared.create_point(&reference)?;
        // Before the first change, so that a later run finds it.
        let mut record = RestorePointRecord::read(&dir)?.unwrap_or_default();
        if let Some(point) = &point {
            record.points.push(point.clone());
            record.write(&dir)?;
        }
        let applied = prepared.apply(point.as_ref(), commit.as_ref());
        if let Some(point) = &point {
            update_record(&dir, record, point, applied.is_ok(), &git)?;
        }
        applied?;
        Ok(DiffApplication { point, commit: commit.map(|commit| commit.id), ..done })
    }
}

/// Conflicts are no error of a dry run.
pub(super) fn has_conflicts(applied: &Result<DiffApplication>) -> bool {
    matches!(applied, Err(EngineError::Apply(ApplyError::Conflicts { .. })))
}

/// Removes this restore point if it was dropped, or, once applied, earlier ones of the tree, reverted since.
fn update_record(
    dir: &TaskDir,
    mut record: RestorePointRecord,
    point: &RestorePoint,
    is_applied: bool,
    git: &Git,
) -> Result<()> {
    let is_stored = point.is_stored();
    let is_obsolete = |other: &RestorePoint| {
        if other == point { !is_stored } else { is_applied && other.top_level == point.top_level }
    };
    let (obsolete, points): (Vec<_>, Vec<_>) = record.points.into_iter().partition(is_obsolete);
    record.points = points;
    record.write(dir)?;
    for point in obsolete {
        let _ = drop_point(git, &point);
    }
    Ok(())
}
