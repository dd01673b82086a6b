//! Our copy of the index, in which the tree of the work tree is built.

use crate::error::GitError;
use crate::records::{RepoPath, join_records};
use crate::scratch::{Scratch, write_tree};

/// Our copy of the index, in which the tree of the work tree is built.
pub(crate) const WORK_INDEX: &str = "index";

/// Compares an index with the work tree, ignoring submodules.
pub(crate) const RAW_DIFF_ARGS: [&str; 6] =
    ["diff-files", "--raw", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=all"];

pub(crate) fn remove_from_index<'a>(
    scratch: &Scratch,
    paths: impl IntoIterator<Item = &'a RepoPath>,
) -> Result<(), GitError> {
    let paths = join_records(paths);
    if paths.is_empty() {
        return Ok(());
    }
    scratch.run(WORK_INDEX, ["update-index", "-z", "--force-remove", "--stdin"], &paths).map(drop)
}

/// Writes an index as a tree; `None` if it has conflicts.
pub(crate) fn write_index_tree(scratch: &Scratch, index: &str) -> Result<Option<String>, GitError> {
    let tree = write_tree(scratch, index);
    if tree.is_err() && !scratch.run(index, ["ls-files", "-z", "--unmerged"], b"")?.is_empty() {
        return Ok(None);
    }
    tree.map(Some)
}
