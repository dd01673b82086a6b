//! The record of a task's restore points (`restore-point.json`), written before the agent starts, and the
//! names of their refs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_git::{GitSettings, RestorePoint};
use delegator_registry::{TaskDir, TaskFile};
use delegator_supervisor::agent::Variables;
use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};
use crate::shared::format_version::{FormatVersion, encode, read_record};
use crate::shared::git_program::git;

const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePointRecord {
    pub version: FormatVersion<1>,
    /// The work tree of the task's working directory first, if it has one.
    pub points: Vec<RestorePoint>,
    /// Work trees without a restore point.
    pub problems: Vec<PointProblem>,
    /// The states before each restore, oldest first; each holds one restore point per work tree.
    pub undo: Vec<Vec<RestorePoint>>,
    /// The settings of the repositories that the task could write to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<RecordedSettings>,
    /// Work trees whose restore point was deleted since; set by `check_stored`.
    #[serde(skip)]
    pub gone: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointProblem {
    pub path: PathBuf,
    pub problem: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSettings {
    pub before: GitSettings,
    /// What the task left; `None` if they did not change, or if the supervisor was lost.
    pub after: Option<GitSettings>,
    pub is_restored: bool,
}

impl RestorePointRecord {
    /// Without it changed settings are reported, but not restored.
    pub(crate) fn add_changed_settings(
        dir: &TaskDir,
        changed: Vec<(GitSettings, GitSettings)>,
    ) -> Result<()> {
        let mut record = RestorePointRecord::read(dir)?.unwrap_or_default();
        for (before, after) in changed {
            record.settings.retain(|known| known.before != before);
            record.settings.push(RecordedSettings { before, after: Some(after), is_restored: false });
        }
        record.write(dir)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty() && self.problems.is_empty() && self.undo.is_empty()
    }

    pub(crate) fn read(dir: &TaskDir) -> Result<Option<RestorePointRecord>> {
        read_record(dir, TaskFile::RestorePoint)
    }

    pub(crate) fn check_stored(mut self) -> RestorePointRecord {
        let gone = self.points.iter().filter(|point| !point.is_stored());
        self.gone = gone.map(|point| point.top_level.clone()).collect();
        self
    }

    pub(crate) fn write(&self, dir: &TaskDir) -> Result<()> {
        let encoded = encode("record a restore point", self)?;
        Ok(dir.write_durably(TaskFile::RestorePoint, encoded.as_bytes())?)
    }
}

/// The command that shows what a restore of a task would change.
pub fn restore_command(task: &TaskId) -> String {
    format!("mcp-delegator restore {task} --dry-run")
}

pub(crate) const REF_PREFIX: &str = "refs/mcp-delegator/";

/// Several directories may share a repository, so each has its own ref.
pub(crate) fn reference(task: &TaskId, directory: usize) -> String {
    match directory {
        0 => format!("{REF_PREFIX}{task}"),
        later => format!("{REF_PREFIX}{task}.{}", later + 1),
    }
}

/// The ref of the state before the restore with this number. The undo of an undo point keeps the base name.
pub(crate) fn undo_reference(reference: &str, number: usize) -> String {
    let first = reference.split(".undo-").next().unwrap_or(reference);
    format!("{first}.undo-{number}")
}

pub fn git_version(workdir: &Path, environment: &Variables) -> Result<String> {
    let version = git(environment, workdir, VERSION_TIMEOUT)?.version();
    version.map_err(|error| EngineError::io("running git --version")(io::Error::other(error)))
}

/// The first line of a git error, at most 300 characters.
pub(crate) fn first_line(text: &str) -> String {
    delegator_domain::text::first_line(text, 300)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undo_points_keep_the_name_of_their_tree() {
        assert_eq!(undo_reference("refs/mcp-delegator/T.2", 3), "refs/mcp-delegator/T.2.undo-3");
        assert_eq!(undo_reference("refs/mcp-delegator/T.undo-1", 2), "refs/mcp-delegator/T.undo-2");
    }
}
