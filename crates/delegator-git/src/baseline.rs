//! How a work tree was before somebody worked in it, for comparing later.
//!
//! What is kept is an index of our own, with the state of every file git does not ignore: how it looks from outside, and
//! a digest of its content. Later a question to that index tells what has been changed since, whatever has been done
//! meanwhile to the repository's own index, its settings or its history. The objects that comparing makes go with us.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::capture::{Capture, LeftOut, Limits, Purpose, capture};
use crate::error::GitError;
use crate::listing::{RepoPath, on_disk};
use crate::repository::{Head, Repository, find_repository};
use crate::run::Git;
use crate::scratch::Scratch;
use crate::stamp::Stamp;

/// Without having read these, nobody can say what became of them.
const MAX_UNREAD: usize = 10_000;

/// The state of a work tree at one moment.
#[derive(Debug)]
pub struct Baseline {
    pub(crate) scratch: Scratch,
    pub(crate) tree: String,
    pub(crate) index_tree: Option<String>,
    pub(crate) index: Option<Stamp>,
    pub(crate) head: Head,
    /// Files that were there and whose content is not in the tree.
    pub(crate) unread: BTreeMap<RepoPath, Stamp>,
    /// Repositories inside the work tree; each ends in a slash.
    repositories: Vec<RepoPath>,
    pub(crate) absent_submodules: Vec<RepoPath>,
    pub(crate) not_examined: Vec<LeftOut>,
    /// Whether the index has entries that a sparse checkout keeps off the disk.
    pub(crate) is_sparse: bool,
    /// Device and inode of the repository: another one in the same place is not the same.
    pub(crate) identity: Option<(u64, u64)>,
}

/// Device and inode of a directory.
pub(crate) fn identity_of(dir: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(dir).ok().map(|found| (found.dev(), found.ino()))
}

impl Baseline {
    /// Takes the state of the work tree `dir` lies in; `None` where there is none. Nothing is added to the repository.
    /// `place` is a directory of ours that stays until the comparison.
    pub fn take(
        git: &Git,
        dir: &Path,
        temp_dir: &Path,
        limits: Limits,
    ) -> Result<Option<Baseline>, GitError> {
        let Some(repository) = find_repository(git, dir)? else { return Ok(None) };
        let head = repository.head(git)?;
        let scratch = Scratch::create(git, &repository, temp_dir)?;
        let index = Stamp::at(&repository.index());
        let captured = capture(&scratch, limits, &BTreeSet::new(), Purpose::Compare)?;
        Baseline::from_capture(scratch, &captured, captured.unread.clone(), (head, index)).map(Some)
    }

    pub(crate) fn from_capture(
        scratch: Scratch,
        captured: &Capture,
        unread: BTreeMap<RepoPath, Stamp>,
        (head, index): (Head, Option<Stamp>),
    ) -> Result<Baseline, GitError> {
        if unread.len() > MAX_UNREAD {
            return Err(GitError::TooManyLeftOut { count: unread.len() });
        }
        let (tree, index_tree) = (captured.tree.clone(), captured.index_tree.clone());
        Ok(Baseline {
            identity: identity_of(&scratch.repository.common_dir),
            scratch,
            tree,
            index_tree,
            index,
            head,
            unread,
            repositories: captured.repositories.clone(),
            absent_submodules: captured.absent_submodules.clone(),
            not_examined: captured.not_examined.clone(),
            is_sparse: !captured.sparse.is_empty(),
        })
    }

    pub fn repository(&self) -> &Repository {
        &self.scratch.repository
    }

    /// The repositories inside the work tree, submodules included. Their files are no part of this comparison.
    pub fn inner_repositories(&self) -> Vec<PathBuf> {
        let top = &self.scratch.repository.top_level;
        let without_slash = |path: &RepoPath| on_disk(top, path.strip_suffix(b"/").unwrap_or(path));
        self.repositories.iter().map(without_slash).collect()
    }

    /// Gives git this long from now on.
    pub fn set_time_limit(&mut self, time: Duration) {
        self.scratch.git = self.scratch.git.with_limit(time);
    }

    /// Which of the paths, relative to the top of the work tree, the ignore files hide now.
    pub fn ignored(&self, paths: &[&[u8]]) -> Result<BTreeSet<Vec<u8>>, GitError> {
        match paths {
            [] => Ok(BTreeSet::new()),
            paths => self.scratch.ignored_in("none", &self.scratch.repository.top_level, paths),
        }
    }
}
