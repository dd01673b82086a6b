//! The recorded state of a work tree, for a later comparison.
//!
//! A baseline is an index of our own that holds every file git does not ignore: its metadata and a digest of
//! its content. Comparing against this index finds all later changes, no matter what happens to the
//! repository's own index, settings or history. Taking a baseline adds nothing to the repository; objects
//! written by a comparison are deleted with the baseline.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::capture::{CapturedFiles, LazyTrees, Limits, Purpose, capture_files};
use crate::error::GitError;
use crate::files::identity_of;
use crate::records::{RepoPath, on_disk};
use crate::repository::{ConfigurationStamps, GitSettings, Head, Opened, Repository, open};
use crate::restore_point::RestorePoint;
use crate::run::Git;
use crate::scratch::Scratch;
use crate::stamp::Stamp;

/// A baseline with more files of unknown content than this would not be worth comparing.
const MAX_UNREAD: usize = 10_000;

/// The state of a work tree at one moment.
#[derive(Debug)]
pub struct Baseline {
    pub(crate) scratch: Scratch,
    pub(crate) captured: CapturedFiles,
    pub(crate) trees: LazyTrees,
    pub(crate) index: Option<Stamp>,
    pub(crate) head: Head,
    /// Stamps of the configuration that made the layout of the repository valid; `None` if git found the
    /// repository.
    pub(crate) configuration: Option<ConfigurationStamps>,
    /// Device and inode of the repository, to detect that another one took its place.
    pub(crate) identity: Option<(u64, u64)>,
    pub(crate) settings: GitSettings,
    /// The restore point of the same state; `None` if there is none, or if it holds an earlier state.
    pub(crate) point: Option<RestorePoint>,
}

impl Baseline {
    /// Records the state of the work tree that contains `dir`; `None` outside a work tree. Adds nothing to
    /// the repository. `temp_dir` is a directory of ours that must exist until the comparison.
    pub fn take(
        git: &Git,
        dir: &Path,
        temp_dir: &Path,
        limits: Limits,
    ) -> Result<Option<Baseline>, GitError> {
        let Some(opened) = open(git, dir)? else { return Ok(None) };
        let scratch = Scratch::with_config(git, &opened.repository, opened.config.clone(), temp_dir)?;
        let (files, trees) = capture_files(&scratch, limits, &BTreeSet::new(), Purpose::Compare)?;
        Baseline::new(scratch, files, trees, opened).map(Some)
    }

    pub(crate) fn new(
        scratch: Scratch,
        captured: CapturedFiles,
        trees: LazyTrees,
        opened: Opened,
    ) -> Result<Baseline, GitError> {
        if captured.unread.len() > MAX_UNREAD {
            return Err(GitError::TooManyLeftOut { count: captured.unread.len() });
        }
        let identity = identity_of(&scratch.repository.common_dir);
        let settings = GitSettings::read(&scratch.repository);
        let Opened { head, index, configuration, .. } = opened;
        Ok(Baseline { scratch, captured, trees, index, head, configuration, identity, settings, point: None })
    }

    pub fn repository(&self) -> &Repository {
        &self.scratch.repository
    }

    /// The settings of the repository.
    pub fn settings(&self) -> &GitSettings {
        &self.settings
    }

    /// The repositories inside the work tree, submodules included. Their files are not part of this
    /// comparison.
    pub fn inner_repositories(&self) -> Vec<PathBuf> {
        let top = &self.scratch.repository.top_level;
        let without_slash = |path: &RepoPath| on_disk(top, path.strip_suffix(b"/").unwrap_or(path));
        self.captured.repositories.iter().map(without_slash).collect()
    }

    /// Limits the total time of all later git calls, counted from now.
    pub fn set_time_limit(&mut self, time: Duration) {
        self.scratch.git = self.scratch.git.with_limit(time);
    }

    /// Returns those of the paths (relative to the top of the work tree) that the present ignore files match.
    pub fn ignored(&self, paths: &[&[u8]]) -> Result<BTreeSet<Vec<u8>>, GitError> {
        match paths {
            [] => Ok(BTreeSet::new()),
            paths => self.scratch.ignored_in("none", &self.scratch.repository.top_level, paths),
        }
    }
}
