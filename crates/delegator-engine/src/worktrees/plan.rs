//! The worktree in which an isolated task works: what its launch file and the registry store about it.

use std::path::{Path, PathBuf};

use delegator_domain::task::TaskId;
use delegator_git::TaskWorktree;
use delegator_registry::{NewWorktree, StoredWorktree, WorktreeUse};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::shared::format_version::{FormatVersion, decode, encode};

pub(crate) const BRANCH_FOLDER: &str = "delegator";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreePlan {
    pub(crate) version: FormatVersion<1>,
    pub(crate) owner: TaskId,
    /// The directory of the user that corresponds to the working directory.
    pub(crate) user_dir: PathBuf,
    pub(crate) worktree: TaskWorktree,
    /// What is done before the agent starts, by the supervisor of the owner.
    pub(crate) copy: Vec<String>,
    pub(crate) setup: Option<String>,
}

impl WorktreePlan {
    pub(crate) fn of_stored(stored: &StoredWorktree) -> Result<WorktreePlan> {
        decode(Path::new(&stored.path), stored.facts.as_bytes())
    }

    pub(crate) fn used_by(&self, task: &TaskId) -> Result<WorktreeUse> {
        if *task != self.owner {
            return Ok(WorktreeUse::Of(self.owner.clone()));
        }
        let facts = encode("describe the worktree", self)?;
        Ok(WorktreeUse::New(NewWorktree { path: self.worktree.path.display().to_string(), facts }))
    }

    pub(crate) fn for_attempt(&self, id: &TaskId) -> WorktreePlan {
        let worktree = TaskWorktree {
            source: self.worktree.source.clone(),
            path: self.worktree.path.with_file_name(id.as_str()),
            branch: format!("{BRANCH_FOLDER}/{id}"),
            store: self.worktree.store.with_file_name(format!("{id}.start")),
            private_dir: self.worktree.private_dir.as_ref().map(|dir| dir.with_file_name(id.as_str())),
        };
        WorktreePlan { owner: id.clone(), worktree, ..self.clone() }
    }

    pub(crate) fn directory_for(&self, working_dir: &Path) -> PathBuf {
        match working_dir.strip_prefix(&self.worktree.source.repository.top_level) {
            Ok(inside) if !inside.as_os_str().is_empty() => self.worktree.path.join(inside),
            _ => self.worktree.path.clone(),
        }
    }
}
