//! Git worktrees in which tasks work without disturbing each other or the user.
//!
//! ```text
//! find_source ─▶ WorktreeSource ─▶ TaskWorktree ─ carry (uncommitted changes) ─▶ create ─ setup ─▶ record_setup
//!                                     the agent works ─▶ diff ─▶ WorkTreeDiff ─▶ branch, or apply_diff in the user's tree
//!                                     remove
//! ```
//!
//! A worktree is an ordinary linked worktree of the user's repository on a branch of its own, so the agent can commit. Its
//! files are written through a git directory of ours, byte for byte: nothing that the repository configures is executed.
//! What the worktree started from beyond its commit is in a store of ours beside it. Whatever the agent does to the git
//! directory of the worktree, we use the paths that we recorded and never the ones in its files.

mod create;
mod finish;
mod source;
mod start_store;

pub use create::CreatedWorktree;
pub use source::{WorktreeError, WorktreeSource, find_source};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::repository::Repository;
use start_store::StartStore;

/// The worktree of a task, whether it exists yet or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWorktree {
    pub source: WorktreeSource,
    /// The top of the worktree. Its last part is the name of its git directory.
    pub path: PathBuf,
    /// Without `refs/heads/`.
    pub branch: String,
    /// A directory of ours for what the worktree started from.
    pub store: PathBuf,
}

impl TaskWorktree {
    /// The git directory of the worktree itself: it holds HEAD and the index.
    pub fn git_dir(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default();
        self.source.common_dir.join("worktrees").join(name)
    }

    /// What git writes when it commits in the worktree. The agent may write there, and nowhere else in the repository.
    pub fn commit_dirs(&self) -> Vec<PathBuf> {
        let common = &self.source.common_dir;
        let branches = Path::new("refs/heads").join(&self.branch);
        let branches = branches.parent().unwrap_or(Path::new("refs/heads"));
        let mut dirs = vec![self.git_dir(), common.join("objects")];
        match common.join("reftable") {
            reftable if reftable.is_dir() => dirs.push(reftable),
            _ => dirs.extend([common.join(branches), common.join("logs").join(branches)]),
        }
        dirs
    }

    fn repository(&self) -> Repository {
        Repository {
            top_level: self.path.clone(),
            git_dir: self.git_dir(),
            common_dir: self.source.common_dir.clone(),
            object_format: self.source.object_format.clone(),
        }
    }

    fn start_store(&self) -> StartStore<'_> {
        StartStore::at(&self.store)
    }
}
