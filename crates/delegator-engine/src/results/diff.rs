//! The diff of a task, for a caller: as it is after an upkeep pass.

use delegator_domain::redact::SecretDigests;
use delegator_domain::task::TaskId;
use delegator_registry::TaskFile;
use delegator_supervisor::agent::Variables;

use crate::Engine;
use crate::error::{EngineError, Result};
use crate::supervise::task_diff::{TaskDiff, recorded_diff};

impl Engine {
    /// What a task changed, without the secrets that were known at its submission. For a task that a provider
    /// ran, that of the first attempt.
    pub fn task_diff(&self, id: &TaskId, environment: &Variables) -> Result<TaskDiff> {
        let task = self.task(id)?;
        if task.remote.is_some() && !task.state.is_terminal() {
            return Err(EngineError::NotEnded { task: task.id, state: task.state });
        }
        let diff = recorded_diff(&*self.registry_of(id)?, &task, environment)?;
        if task.remote.is_some() {
            Ok(TaskDiff { omissions: self.diff_omissions(id)?, ..diff })
        } else {
            Ok(TaskDiff { text: self.mask_secrets(id, diff.text)?, ..diff })
        }
    }

    fn mask_secrets(&self, id: &TaskId, text: Vec<u8>) -> Result<Vec<u8>> {
        let stored = self.read_stored(id, TaskFile::SecretDigests)?;
        if stored.is_empty() {
            return Ok(text);
        }
        let digests: SecretDigests = serde_json::from_slice(&stored).map_err(|error| EngineError::Io {
            doing: "read the digests of secrets",
            source: error.into(),
        })?;
        Ok(digests.mask(&text))
    }
}
