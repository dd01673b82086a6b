//! One attempt of a task, and git for it.

use std::time::Duration;

use delegator_engine::{EngineError, find_git};
use delegator_fleet::TaskSpec;
use delegator_git::{Git, Mirror, RemoteAccess, RemoteError, RemoteUrl};

use crate::attempt_control::AttemptControl;
use crate::attempt_files::AttemptFiles;
use crate::shared::Shared;

/// A first clone of a large repository takes minutes.
const REMOTE_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Listing the files of a work tree.
pub(crate) const LIST_LIMIT: Duration = Duration::from_secs(5 * 60);

pub(crate) struct Attempt<'a> {
    pub(crate) shared: &'a Shared<'a>,
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
        Ok(Mirror::new(self.remote_access(git), url, &self.shared.workspace.mirrors()))
    }
}
