//! Captures the index and the work tree as git trees without changing either.
//!
//! The tree of the work tree starts as a copy of the index. Files that differ on disk and untracked files are
//! added byte for byte. git may convert a file when it is added (line endings, Git LFS); such a file is
//! recognised because its size differs from the size of its object, and its bytes on disk are added instead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use super::examine::{Differences, examine};
use super::gather::{Gatherer, LeftOut, LeftOutReason, Limits};

use crate::error::{GitError, Result};
use crate::files::Stamp;
use crate::index::{IndexFile, TrackedFiles, has_attributes, is_checked_out};
use crate::records::{RepoPath, with_trailing_slash};
use crate::scratch::{Scratch, WORK_INDEX};

/// Why a work tree is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For a restore point: every file byte for byte.
    Save,
    /// Like `Save`, but ignored files are captured only if they are in `needed`.
    Restore,
    /// For a later comparison: files that git considers unchanged are not read, and every file is subject to
    /// the size limits.
    Compare,
}

#[derive(Debug)]
pub(crate) struct Capture {
    /// The id of the tree of the work tree.
    pub(crate) tree: String,
    /// The id of the tree of the index; `None` if the index has conflicts, which a tree cannot represent.
    pub(crate) index_tree: Option<String>,
    pub(crate) files: CapturedFiles,
}

/// What a capture found besides the content of the files.
#[derive(Debug)]
pub(crate) struct CapturedFiles {
    pub(crate) modified: usize,
    pub(crate) untracked: usize,
    pub(crate) left_out: Vec<LeftOut>,
    /// Stamps of files whose content was not read.
    pub(crate) unread: BTreeMap<RepoPath, Stamp>,
    /// Whether a large file was captured that the index does not have.
    pub(crate) has_large_files: bool,
    /// Whether the index has entries that a sparse checkout leaves off the disk.
    pub(crate) is_sparse: bool,
    /// Repositories inside the work tree, submodules included; each path ends in a slash.
    pub(crate) repositories: Vec<RepoPath>,
    /// Submodules that are not checked out.
    pub(crate) absent_submodules: Vec<RepoPath>,
    /// Ignored files and directories that were not examined.
    pub(crate) not_examined: Vec<LeftOut>,
}

/// The copy as it was before files were added.
const INDEX_BEFORE: &str = "before";

/// Captures index and work tree. Files in `needed` are added whatever their size, ignored or not, if they are
/// on disk.
pub(crate) fn capture(
    scratch: &Scratch,
    limits: Limits,
    needed: &BTreeSet<RepoPath>,
    purpose: Purpose,
) -> Result<Capture> {
    let (files, trees) = capture_files(scratch, limits, needed, purpose)?;
    let index_tree = trees.index_tree(scratch)?.clone();
    Ok(Capture { tree: trees.tree(scratch)?.clone(), index_tree, files })
}

/// Like [`capture`], but the trees may be written later.
pub(crate) fn capture_files(
    scratch: &Scratch,
    limits: Limits,
    needed: &BTreeSet<RepoPath>,
    purpose: Purpose,
) -> Result<(CapturedFiles, LazyTrees)> {
    scratch.copy_index(WORK_INDEX)?;
    let tracked = TrackedFiles::read(scratch)?;
    let mut trees = LazyTrees::of_index(scratch, &tracked.index, purpose)?;
    tracked.unhide(scratch)?;
    // A restore only writes paths of the restore point, and `needed` already contains these.
    let lists_ignored = purpose != Purpose::Restore;
    let (differences, ignored) = examine(scratch, lists_ignored)?;
    let converts = purpose != Purpose::Compare && (scratch.converts || has_attributes(&tracked.index));
    let converted = if converts { tracked.converted(scratch)? } else { Vec::new() };
    scratch.update_index(WORK_INDEX, &["--force-remove"], &differences.deleted)?;
    let mut gatherer = Gatherer::new(scratch, limits, needed);
    gather_tracked(&mut gatherer, &differences, &converted, purpose)?;
    let is_ignored = |path: &&RepoPath| !tracked.contains(path) && !differences.untracked.contains(*path);
    for path in differences.untracked.iter().chain(needed.iter().filter(is_ignored)) {
        gatherer.add_if_small(path)?;
    }
    for path in &differences.unreachable {
        gatherer.leave_out(path, LeftOutReason::Unreadable, None);
    }
    for path in &ignored.files {
        match purpose {
            Purpose::Compare => gatherer.record_stamp(path),
            Purpose::Save | Purpose::Restore => gatherer.add_within_quota(path, true)?,
        }
    }
    let (checked_out, absent_submodules): (Vec<RepoPath>, Vec<RepoPath>) =
        tracked.submodules.iter().cloned().partition(|path| is_checked_out(scratch, path));
    let mut repositories: Vec<RepoPath> = checked_out.iter().map(|path| with_trailing_slash(path)).collect();
    repositories.extend(ignored.repositories);
    for path in &repositories {
        gatherer.leave_out(path, LeftOutReason::Repository, None);
    }
    repositories.extend(differences.untracked.iter().filter(|path| path.ends_with(b"/")).cloned());
    let mut gathered = gatherer.finish()?;
    gathered.left_out.extend(ignored.not_examined.iter().cloned());
    trees.matches_index = gathered.count == 0 && differences.changed_count() == 0;
    let files = CapturedFiles {
        modified: differences.changed_count(),
        untracked: differences.untracked.len(),
        left_out: gathered.left_out,
        unread: gathered.unread,
        has_large_files: gathered.has_large_files,
        is_sparse: !tracked.sparse.is_empty(),
        repositories,
        absent_submodules,
        not_examined: ignored.not_examined,
    };
    Ok((files, trees))
}

/// The trees of an index and of a work tree, written when they are needed. Most comparisons need neither.
#[derive(Debug, Default)]
pub(crate) struct LazyTrees {
    tree: OnceLock<String>,
    index_tree: OnceLock<Option<String>>,
    /// Whether the work tree has exactly the files of the index.
    matches_index: bool,
}

impl LazyTrees {
    pub(crate) fn known(tree: String, index_tree: Option<String>) -> LazyTrees {
        LazyTrees { tree: tree.into(), index_tree: index_tree.into(), matches_index: false }
    }

    /// The tree of our copy of the index, which nothing has changed yet.
    fn of_index(scratch: &Scratch, index: &IndexFile, purpose: Purpose) -> Result<LazyTrees> {
        let trees = LazyTrees::default();
        let index_tree = match (index.cached_tree(), purpose) {
            (Some(tree), _) => Some(tree),
            (None, Purpose::Save | Purpose::Restore) => scratch.write_tree_unless_conflicts(WORK_INDEX)?,
            (None, Purpose::Compare) => {
                // git replaces the other name when it changes the index.
                let (from, to) = (scratch.path(WORK_INDEX), scratch.path(INDEX_BEFORE));
                std::fs::hard_link(&from, &to).map_err(GitError::io("link", from))?;
                return Ok(trees);
            }
        };
        Ok(LazyTrees { index_tree: index_tree.into(), ..trees })
    }

    /// The tree of the index; `None` if it has conflicts.
    pub(crate) fn index_tree(&self, scratch: &Scratch) -> Result<&Option<String>> {
        if self.index_tree.get().is_none() {
            let _ = self.index_tree.set(scratch.write_tree_unless_conflicts(INDEX_BEFORE)?);
        }
        self.index_tree.get().ok_or(GitError::unexpected("write-tree"))
    }

    /// The tree of the work tree. The first call must come before our index changes.
    pub(crate) fn tree(&self, scratch: &Scratch) -> Result<&String> {
        if self.tree.get().is_none() {
            let tree = match self.index_tree(scratch)? {
                Some(tree) if self.matches_index => tree.clone(),
                _ => scratch.write_tree(WORK_INDEX)?,
            };
            let _ = self.tree.set(tree);
        }
        self.tree.get().ok_or(GitError::unexpected("write-tree"))
    }
}

/// Adds the content of tracked files that differ from the index.
fn gather_tracked(
    gatherer: &mut Gatherer<'_>,
    differences: &Differences,
    converted: &[RepoPath],
    purpose: Purpose,
) -> Result<()> {
    let changed: BTreeSet<&RepoPath> = differences.modified.iter().chain(&differences.deleted).collect();
    for path in &differences.modified {
        match purpose {
            Purpose::Compare => gatherer.add_if_small(path)?,
            Purpose::Save | Purpose::Restore => gatherer.add_tracked(path)?,
        }
    }
    for path in converted.iter().filter(|path| !changed.contains(*path)) {
        gatherer.add_converted(path)?;
    }
    Ok(())
}
