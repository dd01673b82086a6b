//! The state of a work tree before a task writes in it.
//!
//! Made by the supervisor, after it has the task and before it starts the agent. A task never fails for want of one:
//! what went wrong is written down where the restore point would be, and told with the result.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_git::{Baseline, Git, Kept, Limits, RestorePoint, drop_ref, keep_restore_point};
use delegator_registry::{TaskDir, TaskFile};
use delegator_supervisor::agent::{Variables, locate};
use serde::{Deserialize, Serialize};

use crate::Engine;
use crate::error::EngineError;

/// How long an agent may be kept waiting for it.
const MAY_TAKE: Duration = Duration::from_secs(10);

/// The content of `restore-point.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPoint {
    pub point: Option<RestorePoint>,
    /// Why there is none.
    pub problem: Option<String>,
    /// The states before each restore, oldest first.
    pub undo: Vec<RestorePoint>,
}

impl KeptPoint {
    pub(crate) fn read(dir: &TaskDir) -> Result<Option<KeptPoint>, EngineError> {
        let bytes = dir.read(TaskFile::RestorePoint)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    pub(crate) fn write(&self, dir: &TaskDir) -> Result<(), EngineError> {
        let bytes = serde_json::to_vec(self)
            .map_err(|error| EngineError::Io { doing: "write down a restore point", source: error.into() })?;
        Ok(dir.write_durably(TaskFile::RestorePoint, &bytes)?)
    }
}

/// The words that bring a task's work tree back.
pub fn restore_command(task: &TaskId) -> String {
    format!("mcp-delegator restore {task} --confirm-destructive")
}

pub(crate) fn reference(task: &TaskId) -> String {
    format!("refs/mcp-delegator/{task}")
}

/// git as the submitter has it, but never one that lies in the work tree.
pub(crate) fn git(environment: &Variables, workdir: &Path, may_take: Duration) -> Result<Git, EngineError> {
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let located = locate(OsStr::new("git"), path, Some(workdir)).map_err(EngineError::NoGit)?;
    let given = environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    Ok(Git::new(located.program, given, may_take))
}

/// Keeps the state of the work tree the task is going to write in, or the reason why not. The same state is given, for
/// comparing later.
pub(crate) fn keep(
    task: &TaskId,
    dir: &TaskDir,
    workdir: &Path,
    environment: &Variables,
) -> Result<Option<Baseline>, String> {
    let made = git(environment, workdir, MAY_TAKE).map_err(|error| error.to_string()).and_then(|git| {
        keep_restore_point(&git, workdir, dir.path(), &reference(task), Limits::default())
            .map_err(|error| error.to_string())
    });
    let (kept, baseline) = match made {
        Ok(None) => return Ok(None),
        Ok(Some(Kept { point, baseline })) => {
            let baseline = baseline.map_err(|error| first_line(&error.to_string()));
            (KeptPoint { point: Some(point), ..KeptPoint::default() }, baseline)
        }
        Err(problem) => {
            let problem = first_line(&problem);
            (KeptPoint { problem: Some(problem.clone()), ..KeptPoint::default() }, Err(problem))
        }
    };
    // On a full disk the task is worth more than this.
    let _ = kept.write(dir);
    baseline.map(Some)
}

/// git may say much; the first line says what.
pub(crate) fn first_line(words: &str) -> String {
    words.lines().next().unwrap_or_default().chars().take(300).collect()
}

impl Engine {
    /// Removes the refs a task's restore points are kept by, before the task itself is forgotten. Refs that are no longer
    /// as we made them, and those of a repository that is gone, are left alone. Gives the number that was removed.
    pub fn drop_restore_point(&self, task: &TaskId, environment: &Variables) -> Result<usize, EngineError> {
        let Some(dir) = self.task_dir(task)? else { return Ok(0) };
        let Some(kept) = KeptPoint::read(&dir)? else { return Ok(0) };
        let mut dropped = 0;
        for point in kept.point.iter().chain(&kept.undo).filter(|point| point.repository.is_dir()) {
            let git = git(environment, &point.top_level, MAY_TAKE)?;
            let gone = drop_ref(&git, &point.repository, &point.reference, &point.commit);
            dropped += usize::from(gone.map_err(delegator_git::RestoreError::from)?);
        }
        Ok(dropped)
    }
}
