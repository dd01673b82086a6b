//! The worktree of a task: where its files and its git directories are, and the states that it started from,
//! beyond its commit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::source::WorktreeSource;
use crate::error::{GitError, Result};
use crate::files::{Stamp, if_exists};
use crate::records::RepoPath;
use crate::repository::{GitConfig, Repository, Store};
use crate::run::Git;
use crate::scratch::Scratch;
use crate::task_diff::TreeListing;

/// The state with the uncommitted changes of the user: a file that names a tree, in the store of the
/// worktree.
pub(super) const CARRIED: &str = "carried";
/// The state after the setup command, before the agent.
pub(super) const AFTER_SETUP: &str = "after-setup";
const UNREAD: &str = "after-setup-unread";

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
    /// The directory of its git directories and of the index of ours; `None` of a linked worktree, which
    /// older versions created.
    #[serde(default)]
    pub private_dir: Option<PathBuf>,
}

impl TaskWorktree {
    /// The git directory that has objects, refs and configuration of the worktree.
    pub(super) fn common_dir(&self) -> PathBuf {
        self.private_dir
            .as_ref()
            .map_or_else(|| self.source.repository.common_dir.clone(), |dir| dir.join("git"))
    }

    /// The git directory of the worktree itself: it holds HEAD and the index.
    pub fn git_dir(&self) -> PathBuf {
        self.common_dir().join("worktrees").join(self.path.file_name().unwrap_or_default())
    }

    /// What git writes when it commits in the worktree. The agent may write there, and nowhere else in a git
    /// directory. In the repository of the user it may write no objects, so it cannot commit in a linked
    /// worktree.
    pub fn commit_dirs(&self) -> Vec<PathBuf> {
        let Some(private_dir) = &self.private_dir else { return vec![self.git_dir()] };
        let common = private_dir.join("git");
        let branch = Path::new("refs/heads").join(&self.branch);
        let branches = branch.parent().unwrap_or(&branch);
        vec![
            self.git_dir(),
            common.join("objects"),
            common.join(branches),
            common.join("logs").join(branches),
        ]
    }

    /// What is removed with the worktree, besides its files and the store.
    pub fn own_dir(&self) -> PathBuf {
        self.private_dir.clone().unwrap_or_else(|| self.git_dir())
    }

    /// A file of ours: `index` is that of the commit, written with the files; `refs` are those that the git
    /// directory started with.
    pub(super) fn private_file(&self, name: &str) -> Option<PathBuf> {
        self.private_dir.as_ref().map(|dir| dir.join(name))
    }

    /// The ref in the user's repository that protects the commit from `git gc`; of a linked worktree, its
    /// branch.
    pub(super) fn reference(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        match self.private_dir {
            Some(_) => format!("refs/mcp-delegator-worktrees/{name}"),
            None => format!("refs/heads/{}", self.branch),
        }
    }

    /// A git directory of ours for the files of the worktree, with an index that the agent cannot change.
    pub(super) fn scratch(&self, git: &Git, temp_dir: &Path) -> Result<Scratch> {
        let source = &self.source.repository;
        let git_dir = if source.git_dir.is_dir() { &source.git_dir } else { &source.common_dir };
        let config = GitConfig::read(git, &self.path, git_dir)?;
        let own_dir = self.private_dir.as_deref().filter(|dir| dir.is_dir());
        let repository = Repository {
            top_level: self.path.clone(),
            git_dir: own_dir.unwrap_or(temp_dir).to_owned(),
            ..source.clone()
        };
        Scratch::with_config(git, &repository, config, temp_dir)
    }

    /// Makes the objects of the states that it started from readable.
    pub(super) fn attach_start_objects(&self, scratch: &Scratch) -> Result<()> {
        scratch.read_from(&Store::at(&self.store))
    }

    /// The files that were not read after the setup: large and ignored ones.
    pub(super) fn unread_after_setup(&self) -> Result<BTreeMap<RepoPath, Stamp>> {
        match fs::read(self.store.join(UNREAD)) {
            Ok(bytes) => Ok(TreeListing::from_bytes(&bytes)?.unread),
            Err(_) => Ok(BTreeMap::new()),
        }
    }

    pub(super) fn save_unread_after_setup(&self, unread: BTreeMap<RepoPath, Stamp>) -> Result<()> {
        let (path, listing) = (self.store.join(UNREAD), TreeListing { unread, ..TreeListing::default() });
        fs::write(&path, listing.to_bytes()).map_err(GitError::io("write", path))
    }

    /// The tree of a state that it started from.
    pub(super) fn start_tree(&self, state: &str) -> Result<Option<String>> {
        let path = self.store.join(state);
        let id = if_exists(fs::read_to_string(&path)).map_err(GitError::io("read", path))?;
        Ok(id.map(|id| id.trim().to_owned()))
    }

    /// Stores a tree that the scratch directory can read, without the objects of the commit.
    pub(super) fn save_start_tree(&self, scratch: &Scratch, state: &str, tree: &str) -> Result<()> {
        let objects = Store::at(&self.store).objects();
        fs::create_dir_all(&objects).map_err(GitError::io("create", &objects))?;
        let committed = scratch.tree_of(&self.source.commit)?;
        let needed = scratch.list_objects([tree, "--not", &committed])?;
        scratch.pack_into(&objects, "pack", &needed)?;
        let path = self.store.join(state);
        fs::write(&path, format!("{tree}\n")).map_err(GitError::io("write", path))
    }
}
