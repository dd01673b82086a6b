//! The files of one attempt, which a restarted worker reads to continue it.
//!
//! `attempt.json` is written last, when everything before the submission is done: an attempt without it was
//! interrupted while it was prepared.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use delegator_engine::{EngineError, FormatVersion, decode_record, remove_directory};
use delegator_git::{BaseCommit, TreeListing};
use delegator_registry::{Durability, replace_file};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone)]
pub(crate) struct AttemptFiles {
    dir: PathBuf,
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
    pub(crate) fn new(dir: PathBuf) -> AttemptFiles {
        AttemptFiles { dir }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The checkout in which the agent works.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    /// Contents of files as they were before the agent started.
    pub(crate) fn before(&self) -> PathBuf {
        self.dir.join("before")
    }

    /// For temporary files of git.
    pub(crate) fn temp(&self) -> PathBuf {
        self.dir.join("temp")
    }

    /// Creates the directory; removes what an interrupted worker has left.
    pub(crate) fn create(&self) -> io::Result<()> {
        remove_directory(&self.dir)?;
        fs::create_dir_all(self.temp())
    }

    pub(crate) fn write_setup_output(&self, output: &[u8]) -> io::Result<()> {
        fs::write(self.dir.join("setup-output"), output)
    }

    /// The output of the setup script; `None` if there is no script.
    pub(crate) fn setup_output(&self) -> Option<Vec<u8>> {
        fs::read(self.dir.join("setup-output")).ok()
    }

    pub(crate) fn write_prepared(&self, prepared: &PreparedAttempt, before: &TreeListing) -> io::Result<()> {
        replace_file(&self.dir.join("files-before"), &before.to_bytes(), Durability::Synced)?;
        replace_file(&self.dir.join("attempt.json"), &serde_json::to_vec(prepared)?, Durability::Synced)
    }

    /// `None` if the attempt was not prepared completely.
    pub(crate) fn read_prepared(&self) -> Result<Option<PreparedAttempt>, EngineError> {
        let path = self.dir.join("attempt.json");
        match fs::read(&path) {
            Ok(bytes) => decode_record(&path, &bytes).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EngineError::Io { doing: "read the state of an attempt", source: error }),
        }
    }

    /// When the attempt was prepared, in seconds since 1970.
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
