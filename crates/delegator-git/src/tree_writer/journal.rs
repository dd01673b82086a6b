//! The record of an operation that has begun, for the process that finishes it.
//!
//! It is complete and durable before the first change. Until `is_decided` is set, or a ref has moved, the
//! operation is taken back; after that it is completed.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::steps::Step;
use crate::error::{GitError, Operation, Result};
use crate::files::{Stamp, write_atomically};
use crate::repository::Repository;
use crate::restore_point::RestorePoint;
use crate::run::Git;

const FILE_NAME: &str = "journal";
const VERSION: u32 = 1;

/// A ref to move, create or delete. `HEAD` is detached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefChange {
    pub(crate) name: String,
    pub(crate) old: Option<String>,
    pub(crate) new: Option<String>,
}

impl RefChange {
    /// As `update-ref --stdin -z` reads it.
    fn command(&self) -> String {
        let name = &self.name;
        match (&self.new, &self.old) {
            (Some(new), Some(old)) => format!("update {name}\0{new}\0{old}\0"),
            // HEAD exists even if its branch has no commit.
            (Some(new), None) if name == "HEAD" => format!("update {name}\0{new}\0\0"),
            (Some(new), None) => format!("create {name}\0{new}\0"),
            (None, Some(old)) => format!("delete {name}\0{old}\0"),
            (None, None) => String::new(),
        }
    }
}

/// The stamps of the index file before and after; `None` if there is none.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct IndexChange {
    pub(crate) old: Option<Stamp>,
    pub(crate) new: Option<Stamp>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    pub(super) version: u32,
    pub(crate) operation: Operation,
    pub(crate) steps: Vec<Step>,
    pub(crate) point: Option<RestorePoint>,
    pub(crate) index: Option<IndexChange>,
    pub(crate) refs: Vec<RefChange>,
    /// The branch that HEAD names afterwards, if it changes.
    pub(crate) attach: Option<String>,
    pub(crate) is_decided: bool,
}

impl Journal {
    pub(crate) fn new(operation: Operation, point: Option<RestorePoint>) -> Journal {
        Journal {
            version: VERSION,
            operation,
            steps: Vec::new(),
            point,
            index: None,
            refs: Vec::new(),
            attach: None,
            is_decided: false,
        }
    }

    /// The name of the restore point of the state before.
    pub(crate) fn point_name(&self) -> String {
        self.point.as_ref().map(|point| point.reference.clone()).unwrap_or_default()
    }

    pub(crate) fn exists(dir: &Path) -> bool {
        fs::symlink_metadata(dir.join(FILE_NAME)).is_ok()
    }

    /// `None` if there is none that this version can read.
    pub(crate) fn read(dir: &Path) -> Option<Journal> {
        let journal: Journal = serde_json::from_slice(&fs::read(dir.join(FILE_NAME)).ok()?).ok()?;
        (journal.version == VERSION).then_some(journal)
    }

    pub(crate) fn store(&self, dir: &Path) -> Result<()> {
        let path = dir.join(FILE_NAME);
        let stored = serde_json::to_vec(self).map_err(io::Error::from);
        stored.and_then(|bytes| write_atomically(&path, &bytes, true)).map_err(GitError::io("write", path))
    }

    pub(crate) fn delete(dir: &Path) -> Result<()> {
        fs::remove_file(dir.join(FILE_NAME)).map_err(GitError::io("delete", dir.join(FILE_NAME)))
    }

    pub(crate) fn update_refs(&self, git: &Git, repository: &Repository) -> Result<()> {
        let commands: String = self.refs.iter().map(RefChange::command).collect();
        if commands.is_empty() {
            return Ok(());
        }
        repository.update_refs(git, commands.as_bytes(), &format!("mcp-delegator: {}", self.operation))
    }

    /// Whether a killed process came so far that the operation must be completed.
    pub(crate) fn is_done(&self, git: &Git, repository: &Repository) -> Result<bool> {
        let mut is_done = self.is_decided;
        for change in self.refs.iter().filter(|change| change.old != change.new && change.name != "HEAD") {
            let now = repository.resolve_ref(git, &change.name)?;
            is_done |= now != change.old
                && match (&now, &change.new) {
                    // The user may have committed since.
                    (Some(now), Some(new)) => {
                        let contains = ["merge-base", "--is-ancestor", new, now];
                        repository.run_optional(git, contains)?.is_some()
                    }
                    (now, new) => now == new,
                };
        }
        Ok(is_done)
    }
}
