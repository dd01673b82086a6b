//! One attempt of a task: git for it, its files, and how it ended.
//!
//! A restarted worker reads the files to continue the attempt. `attempt.json` is written last, when
//! everything before the submission is done: an attempt without it was interrupted while it was prepared.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, io};

use delegator_domain::task::{FailureKind, TaskEnd, TaskId};
use delegator_engine::{EngineError, FormatVersion, decode_record, find_git, remove_directory};
use delegator_fleet::TaskSpec;
use delegator_git::{BaseCommit, Git, Mirror, RemoteAccess, RemoteError, RemoteUrl, TreeListing};
use delegator_registry::{Durability, replace_file};
use serde::{Deserialize, Serialize};

use crate::attempt_control::{AttemptControl, Stop};
use crate::worker_state::WorkerState;

/// A first clone of a large repository takes minutes.
const REMOTE_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Listing the files of a work tree.
pub(crate) const LIST_LIMIT: Duration = Duration::from_secs(5 * 60);

pub(crate) struct Attempt<'a> {
    pub(crate) shared: &'a WorkerState<'a>,
    pub(crate) control: &'a AttemptControl,
    pub(crate) spec: &'a TaskSpec,
    pub(crate) files: AttemptFiles,
}

impl Attempt<'_> {
    /// git, from the PATH of the worker.
    pub(crate) fn git(&self) -> Result<Git, EngineError> {
        find_git(&self.shared.settings.variables, &self.files.work(), LIST_LIMIT)
    }

    pub(crate) fn remote_access(&self, git: &Git) -> RemoteAccess {
        let variables = self.shared.settings.variables.iter();
        RemoteAccess::new(
            git,
            variables.map(|(name, value)| (name.as_os_str(), value.as_os_str())),
            REMOTE_LIMIT,
        )
    }

    pub(crate) fn mirror(&self, git: &Git) -> Result<Mirror, RemoteError> {
        let url = RemoteUrl::parse(&self.spec.repo_url)?;
        Ok(Mirror::new(self.remote_access(git), url, &self.shared.workspace.dirs.mirrors()))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct AttemptFiles {
    pub(crate) dir: PathBuf,
}

/// What is known about an attempt that is ready to be submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreparedAttempt {
    version: FormatVersion<1>,
    pub(crate) base_commit: String,
    pub(crate) branch: Option<String>,
}

impl PreparedAttempt {
    pub(crate) fn new(base: &BaseCommit) -> PreparedAttempt {
        PreparedAttempt {
            version: FormatVersion,
            base_commit: base.commit.clone(),
            branch: base.branch.clone(),
        }
    }
}

impl AttemptFiles {
    /// The checkout in which the agent works.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    /// Contents of files as they were before the agent started.
    pub(crate) fn before(&self) -> PathBuf {
        self.dir.join("before")
    }

    pub(crate) fn temp(&self) -> PathBuf {
        self.dir.join("temp")
    }

    pub(crate) fn create(&self) -> io::Result<()> {
        remove_directory(&self.dir)?;
        fs::create_dir_all(self.temp())
    }

    pub(crate) fn write_setup_output(&self, output: &[u8]) -> io::Result<()> {
        fs::write(self.dir.join("setup-output"), output)
    }

    pub(crate) fn setup_output(&self) -> Option<Vec<u8>> {
        fs::read(self.dir.join("setup-output")).ok()
    }

    pub(crate) fn write_prepared(&self, prepared: &PreparedAttempt, before: &TreeListing) -> io::Result<()> {
        replace_file(&self.dir.join("files-before"), &before.to_bytes(), Durability::Synced)?;
        replace_file(&self.dir.join("attempt.json"), &serde_json::to_vec(prepared)?, Durability::Synced)
    }

    pub(crate) fn read_prepared(&self) -> Result<Option<PreparedAttempt>, EngineError> {
        let path = self.dir.join("attempt.json");
        match fs::read(&path) {
            Ok(bytes) => decode_record(&path, &bytes).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EngineError::Io { doing: "read the state of an attempt", source: error }),
        }
    }

    pub(crate) fn prepared_at_sec(&self) -> Result<u64, EngineError> {
        let modified = fs::metadata(self.dir.join("attempt.json")).and_then(|found| found.modified());
        let modified = modified.map_err(EngineError::io("read the state of an attempt"))?;
        Ok(modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
    }

    pub(crate) fn files_before(&self) -> Result<TreeListing, String> {
        let bytes = fs::read(self.dir.join("files-before")).map_err(|error| error.to_string())?;
        TreeListing::from_bytes(&bytes).map_err(|error| error.to_string())
    }
}

#[derive(Debug)]
pub(crate) enum AttemptEnd {
    /// The task has ended: report it.
    Ended(Box<Ended>),
    /// The task goes back to the queue; its agent was not started.
    Released,
    /// The task cannot be continued: report the worker as lost for it.
    GivenUp(String),
    /// The task belongs to others: report nothing.
    Dropped,
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: TaskEnd,
    /// `None` if the repository could not be checked out.
    pub(crate) base: Option<PreparedAttempt>,
    /// The task of this machine; `None` if the agent was not started.
    pub(crate) local: Option<TaskId>,
    pub(crate) setup_output: Option<Vec<u8>>,
    /// What the worker could not do for the task.
    pub(crate) warnings: Vec<String>,
}

impl Ended {
    pub(crate) fn new(end: TaskEnd) -> Ended {
        Ended { end, base: None, local: None, setup_output: None, warnings: Vec::new() }
    }
}

impl AttemptEnd {
    pub(crate) fn internal(error: &EngineError) -> AttemptEnd {
        AttemptEnd::Ended(Box::new(Ended::new(TaskEnd::failed(FailureKind::Internal, error.to_string()))))
    }

    /// Whether the task here has ended, as far as the worker knows.
    pub(crate) fn is_ended_here(&self) -> bool {
        matches!(self, AttemptEnd::Ended(ended) if ended.local.is_some())
    }
}

pub(crate) fn stopped(control: &AttemptControl) -> AttemptEnd {
    match control.stop() {
        Some(Stop::Cancel { reason }) => {
            AttemptEnd::Ended(Box::new(Ended::new(TaskEnd::Cancelled { reason })))
        }
        Some(Stop::CutOff) => AttemptEnd::GivenUp("the worker had no connection to the database".to_owned()),
        Some(Stop::Lost) => AttemptEnd::Dropped,
        Some(Stop::Release) | None => AttemptEnd::Released,
    }
}
