//! Applies the diff of a task that a provider ran to a work tree of the user.
//!
//! All or nothing. The state before is stored as the restore point of the task, so `restore` reverts what was applied. A
//! diff is never applied while another task may write to the tree.

use std::path::Path;
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_git::{ApplyError, ApplyReport, ApplyRequest, RestorePoint, drop_point, prepare_diff};
use delegator_registry::{Task, TaskDir, TaskFile};
use delegator_supervisor::agent::Variables;

use super::restore::refuse_while_busy;
use super::worktrees::ApplyOptions;
use crate::Engine;
use crate::error::EngineError;
use crate::remote::remote_facts::RemoteFacts;
use crate::remote::submit_remote::provider_error;
use crate::upkeep::diff_omissions::DiffOmissions;
use crate::upkeep::restore_record::{RestorePointRecord, git, reference};

/// Long, because the files of a large diff are merged one by one.
const APPLY_TIMEOUT: Duration = Duration::from_secs(300);

/// What was, or would be, changed.
#[derive(Debug, Default)]
pub struct DiffApplication {
    pub report: ApplyReport,
    /// The state before; `None` if nothing was changed.
    pub point: Option<RestorePoint>,
    /// The commit with the changes, if one was requested.
    pub commit: Option<String>,
}

impl Engine {
    /// The diff of an ended task that a provider ran; of another attempt than the first, the provider is queried.
    pub fn remote_diff(&self, task: &Task, attempt: u8) -> Result<Vec<u8>, EngineError> {
        let remote = task.remote.as_ref().and_then(|remote| Some((remote, remote.accepted.as_ref()?)));
        match remote {
            Some((remote, accepted)) if attempt > 1 => {
                let provider = remote.environment.provider;
                let diff = self.providers.get(provider).and_then(|service| service.diff(accepted, attempt));
                let diff = diff.map_err(|error| provider_error(provider, Some(&task.id), error))?;
                Ok(diff.unwrap_or_default())
            }
            _ => self.read_stored(&task.id, TaskFile::Diff),
        }
    }

    /// What the diff of an ended task does not have. Of hosted Codex nothing is known.
    pub fn diff_omissions(&self, id: &TaskId) -> Result<DiffOmissions, EngineError> {
        let Some(dir) = self.task_dir(id)? else { return Ok(DiffOmissions::default()) };
        Ok(RemoteFacts::read(&dir)?.unwrap_or_default().omissions)
    }

    /// Applies a diff of an ended task to the work tree that contains `directory`; with `dry_run`, only reports
    /// what it would change. Conflicts are an error, with `dry_run` a part of the report.
    pub fn apply_diff(
        &self,
        (id, diff): (&TaskId, &[u8]),
        target: (&Path, &Variables),
        dry_run: bool,
    ) -> Result<DiffApplication, EngineError> {
        let facts = match self.task_dir(id)? {
            Some(dir) => RemoteFacts::read(&dir)?.unwrap_or_default(),
            None => RemoteFacts::default(),
        };
        let options = ApplyOptions { dry_run, ..ApplyOptions::default() };
        self.apply_text((id, diff), (facts.base_commit.as_deref(), None), target, options)
    }

    /// The same for any diff. `base_commit` and `store` have the original versions of the files.
    pub(super) fn apply_text(
        &self,
        (id, diff): (&TaskId, &[u8]),
        (base_commit, store): (Option<&str>, Option<&Path>),
        (directory, environment): (&Path, &Variables),
        options: ApplyOptions<'_>,
    ) -> Result<DiffApplication, EngineError> {
        let unknown = || EngineError::UnknownTask { given: id.to_string() };
        let mut registry = self.find_registry()?.ok_or_else(unknown)?;
        self.rescue_in(&mut registry)?;
        let dir = registry.dir().task(id);
        let git = git(environment, directory, APPLY_TIMEOUT)?;
        let request = ApplyRequest { work_tree: directory, diff, base_commit, store };
        let prepared = prepare_diff(&git, request, dir.path())?;
        let report = prepared.report.clone();
        refuse_while_busy(Some(&registry), [prepared.top_level()])?;
        if options.dry_run {
            return Ok(DiffApplication { report, point: None, commit: None });
        }
        let reference = reference(id, 0);
        let (point, commit) = match options.commit {
            None => (prepared.apply(&reference)?, None),
            Some(message) => {
                let commit = prepared.plan_commit(diff, message)?;
                let (point, commit) = prepared.apply_and_commit(&reference, commit)?;
                (point, Some(commit))
            }
        };
        if let Some(point) = &point {
            let replaced = record_point(&dir, point).map_err(|error| ApplyError::Incomplete {
                problem: format!("the restore point was not recorded: {error}"),
                point: point.reference.clone(),
            })?;
            // The state before an earlier application to the same tree, which was reverted since.
            for earlier in replaced {
                let _ = drop_point(&git, &earlier);
            }
        }
        Ok(DiffApplication { report, point, commit })
    }
}

/// Records the restore point of a work tree. Returns those that it replaces.
fn record_point(dir: &TaskDir, point: &RestorePoint) -> Result<Vec<RestorePoint>, EngineError> {
    let mut record = RestorePointRecord::read(dir)?.unwrap_or_default();
    let is_same_tree = |earlier: &RestorePoint| earlier.top_level == point.top_level;
    let (replaced, others): (Vec<_>, Vec<_>) = record.points.into_iter().partition(is_same_tree);
    record.points = others;
    record.points.push(point.clone());
    record.write(dir)?;
    Ok(replaced)
}
