//! The states that a worktree started from, beyond its commit: with the user's uncommitted changes, and after
//! the setup.
//!
//! Each is a file that names a tree; its objects that the commit does not have are in packs beside it.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::{GitError, Result};
use crate::repository::Store;
use crate::scratch::Scratch;
use crate::task_diff::TreeListing;

const UNREAD: &str = "after-setup-unread";

/// A state of the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The commit with the uncommitted changes of the user.
    Carried,
    /// After the setup command, before the agent.
    AfterSetup,
}

impl Start {
    fn file(self) -> &'static str {
        match self {
            Start::Carried => "carried",
            Start::AfterSetup => "after-setup",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StartStore<'a> {
    dir: &'a Path,
}

impl<'a> StartStore<'a> {
    pub(super) fn at(dir: &'a Path) -> StartStore<'a> {
        StartStore { dir }
    }

    /// The files that were not read after the setup: large and ignored ones.
    pub(super) fn unread(self) -> Result<TreeListing> {
        match fs::read(self.dir.join(UNREAD)) {
            Ok(bytes) => TreeListing::from_bytes(&bytes),
            Err(_) => Ok(TreeListing::default()),
        }
    }

    pub(super) fn save_unread(self, listing: &TreeListing) -> Result<()> {
        let path = self.dir.join(UNREAD);
        fs::write(&path, listing.to_bytes()).map_err(GitError::io("write", path))
    }

    /// Makes the objects readable.
    pub(super) fn attach(self, scratch: &Scratch) -> Result<()> {
        scratch.read_from(&Store::at(self.dir))
    }

    pub(super) fn tree(self, start: Start) -> Result<Option<String>> {
        let path = self.dir.join(start.file());
        match fs::read_to_string(&path) {
            Ok(id) => Ok(Some(id.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(GitError::io("read", path)(error)),
        }
    }

    /// Stores a tree that the scratch directory can read; `commit` is one that the repository retains.
    pub(super) fn save(self, scratch: &Scratch, start: Start, commit: &str, tree: &str) -> Result<()> {
        let objects = Store::at(self.dir).objects();
        fs::create_dir_all(&objects).map_err(GitError::io("create", &objects))?;
        let needed = scratch.list_objects([tree, "--not", &scratch.tree_of(commit)?])?;
        scratch.pack_into(&objects, "pack", &needed)?;
        let path = self.dir.join(start.file());
        fs::write(&path, format!("{tree}\n")).map_err(GitError::io("write", path))
    }
}
