//! What a provider reports about an ended task besides its report, stored as `remote.json`.

use delegator_registry::{TaskDir, TaskFile};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::shared::format_version::{FormatVersion, encode, read_record};
use crate::upkeep::worktrees::DiffOmissions;

/// Where the changes of a task belong, and who ran it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteFacts {
    version: FormatVersion<1>,
    pub base_commit: Option<String>,
    /// The branch of that commit.
    pub branch: Option<String>,
    pub pushed_branch: Option<String>,
    pub worker: Option<String>,
    pub omissions: DiffOmissions,
}

impl RemoteFacts {
    pub fn new(
        base_commit: Option<String>,
        branch: Option<String>,
        pushed_branch: Option<String>,
        worker: Option<String>,
        omissions: DiffOmissions,
    ) -> RemoteFacts {
        RemoteFacts { version: FormatVersion, base_commit, branch, pushed_branch, worker, omissions }
    }

    pub(super) fn write(&self, dir: &TaskDir) -> Result<()> {
        let encoded = encode("encode the facts of a task", self)?;
        Ok(dir.write_durably(TaskFile::RemoteFacts, encoded.as_bytes())?)
    }

    pub(crate) fn read(dir: &TaskDir) -> Result<Option<RemoteFacts>> {
        read_record(dir, TaskFile::RemoteFacts)
    }
}
