//! Git worktrees in which tasks work without disturbing each other or the user.
//!
//! ```text
//! find_source ─▶ WorktreeSource ─▶ TaskWorktree ─ carry (uncommitted changes) ─▶ create ─ setup ─▶ record_setup
//!                                     the agent works ─▶ diff ─▶ WorkTreeDiff ─▶ branch, or apply_diff in the user's tree
//!                                     remove
//! ```
//!
//! A worktree has a git directory of its own, in which the agent can commit. It reads the objects of the user's
//! repository and writes to its own, so an enclosed agent needs no right to write in the repository. Commits come over when a
//! branch is created. Nothing that the repository configures is executed; files are written byte for byte.
//!
//! The agent owns that git directory, so no git process of ours uses it: comparisons use a git directory and an index of ours.
//! What the worktree started from beyond its commit is in a store of ours. Older versions created linked worktrees.

mod agent_files;
mod create;
mod finish;
mod private_git_dir;
mod source;
mod start_store;

pub use create::CreatedWorktree;
pub use source::{WorktreeError, WorktreeSource, find_source};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::repository::Repository;
use crate::run::Git;
use crate::scratch::Scratch;
use crate::settings::read_settings;
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
    /// The directory of the git directory and of the index of ours; `None` of a linked worktree, which older versions created.
    #[serde(default)]
    pub private_dir: Option<PathBuf>,
}

impl TaskWorktree {
    /// The git directory of the worktree, with HEAD and index. The agent may write there, and nowhere else in a repository.
    pub fn git_dir(&self) -> PathBuf {
        match &self.private_dir {
            Some(dir) => dir.join("git"),
            None => self.own_dir(),
        }
    }

    /// What is removed with the worktree, besides its files and the store.
    pub fn own_dir(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default();
        self.private_dir.clone().unwrap_or_else(|| self.source.common_dir.join("worktrees").join(name))
    }

    /// The index of the commit as it was written with the files; the agent cannot change it.
    fn index(&self) -> Option<PathBuf> {
        self.private_dir.as_ref().map(|dir| dir.join("index"))
    }

    /// The refs that the git directory started with.
    fn refs(&self) -> Option<PathBuf> {
        self.private_dir.as_ref().map(|dir| dir.join("refs"))
    }

    /// The ref in the user's repository that protects the commit from `git gc`; of a linked worktree, its branch.
    fn reference(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        match self.private_dir {
            Some(_) => format!("refs/mcp-delegator-worktrees/{name}"),
            None => format!("refs/heads/{}", self.branch),
        }
    }

    /// A git directory of ours for the files of the worktree, with an index that the agent cannot change.
    fn scratch(&self, git: &Git, temp_dir: &Path) -> Result<Scratch, GitError> {
        let source = &self.source;
        let git_dir = if source.git_dir.is_dir() { &source.git_dir } else { &source.common_dir };
        let settings = read_settings(git, &self.path, git_dir)?.settings;
        let own_dir = self.private_dir.as_deref().filter(|dir| dir.is_dir());
        let repository = Repository {
            top_level: self.path.clone(),
            git_dir: own_dir.unwrap_or(temp_dir).to_owned(),
            common_dir: source.common_dir.clone(),
            object_format: source.object_format.clone(),
        };
        Scratch::with_settings(git, &repository, &settings, temp_dir)
    }

    fn start_store(&self) -> StartStore<'_> {
        StartStore::at(&self.store)
    }
}
