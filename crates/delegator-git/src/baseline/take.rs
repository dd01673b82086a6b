//! The recorded state of a work tree, for a later comparison.
//!
//! A baseline is an index of our own that holds every file git does not ignore: its metadata and a digest of
//! its content. Comparing against this index finds all later changes, no matter what happens to the
//! repository's own index, settings or history. Taking a baseline adds nothing to the repository; objects
//! written by a comparison are deleted with the baseline.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::capture::{
    Capture, CapturedFiles, LazyTrees, Limits, Purpose, TreeState, capture, capture_files, survey_work_index,
};
use crate::error::{GitError, Result};
use crate::files::{Stamp, identity_of};
use crate::index::IndexFile;
use crate::records::RepoPath;
use crate::repository::{ConfigurationStamps, GitSettings, Head, Opened, Repository, open};
use crate::restore_point::{CommittedTree, RestorePoint, read_points, record};
use crate::run::Git;
use crate::scratch::Scratch;

/// A baseline with more files of unknown content than this would not be worth comparing.
const MAX_UNREAD: usize = 10_000;

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
    pub fn take(git: &Git, dir: &Path, temp_dir: &Path, limits: Limits) -> Result<Option<Baseline>> {
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
    ) -> Result<Baseline> {
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

    pub fn settings(&self) -> &GitSettings {
        &self.settings
    }

    /// The repositories inside the work tree, submodules included. Their files are not part of this
    /// comparison.
    pub fn inner_repositories(&self) -> Vec<PathBuf> {
        let without_slash = |path: &RepoPath| self.scratch.on_disk(path.strip_suffix(b"/").unwrap_or(path));
        self.captured.repositories.iter().map(without_slash).collect()
    }

    /// Limits the total time of all later git calls, counted from now.
    pub fn set_time_limit(&mut self, time: Duration) {
        self.scratch.git = self.scratch.git.with_limit(time);
    }

    /// Returns those of the paths (relative to the top of the work tree) that the present ignore files match.
    pub fn ignored(&self, paths: &[&[u8]]) -> Result<BTreeSet<Vec<u8>>> {
        match paths {
            [] => Ok(BTreeSet::new()),
            paths => self.scratch.ignored_in("none", self.scratch.top(), paths),
        }
    }
}

/// A restore point and a baseline of the same state.
#[derive(Debug)]
pub struct CreatedPoint {
    pub point: RestorePoint,
    /// An error here does not affect the restore point.
    pub baseline: Result<Baseline>,
}

/// Creates a restore point of the work tree that contains `dir`, and a baseline like [`Baseline::take`]. An
/// existing restore point of that name is returned unchanged: an earlier attempt at the same task created it,
/// and it may be the only copy of the state before.
pub fn create_restore_point(
    git: &Git,
    dir: &Path,
    temp_dir: &Path,
    reference: &str,
    limits: Limits,
) -> Result<Option<CreatedPoint>> {
    let Some(opened) = open(git, dir)? else { return Ok(None) };
    let scratch = Scratch::with_config(git, &opened.repository, opened.config.clone(), temp_dir)?;
    let index = IndexFile::read(&scratch)?;
    let committed = CommittedTree::start(&scratch, &opened.head)?;
    let captured = capture(&scratch, limits, &BTreeSet::new(), Purpose::Save)?;
    let survey = survey_work_index(&scratch, limits.time)?;
    let mut state = TreeState::new(&scratch, captured, index, survey);
    let known = read_points(git, &opened.repository, &scratch.store, vec![reference.to_owned()])?;
    let point = match known.into_iter().next() {
        Some(point) => point,
        None => record(&scratch, &mut state, &opened.head, committed, reference)?,
    };
    let Capture { tree, index_tree, files } = state.captured;
    // An earlier attempt may have created the point, of another state.
    let is_same_state = point.tree == tree && point.index_tree == index_tree;
    let known_point = is_same_state.then(|| point.clone());
    let baseline = Baseline::new(scratch, files, LazyTrees::known(tree, index_tree), opened)
        .map(|baseline| Baseline { point: known_point, ..baseline });
    Ok(Some(CreatedPoint { point, baseline }))
}
