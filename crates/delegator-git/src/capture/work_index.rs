//! Our copy of the index, in which the tree of the work tree is built.

use crate::error::GitError;
use crate::records::{RepoPath, join_records, single_line};
use crate::scratch::Scratch;

/// Our copy of the index, in which the tree of the work tree is built.
pub(crate) const WORK_INDEX: &str = "index";

/// Compares an index with the work tree, ignoring submodules.
pub(crate) const RAW_DIFF_ARGS: [&str; 6] =
    ["diff-files", "--raw", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=all"];

/// Appends a slash, as git lists untracked repositories.
pub(crate) fn with_trailing_slash(path: &RepoPath) -> RepoPath {
    [path.as_slice(), b"/"].concat()
}

pub(crate) fn remove_from_index<'a>(
    scratch: &Scratch,
    paths: impl Iterator<Item = &'a RepoPath>,
) -> Result<(), GitError> {
    let paths = join_records(paths.map(Vec::as_slice));
    if paths.is_empty() {
        return Ok(());
    }
    scratch.run(WORK_INDEX, ["update-index", "-z", "--force-remove", "--stdin"], &paths).map(drop)
}

/// Writes the captured files as a tree.
pub(crate) fn write_work_tree(scratch: &Scratch) -> Result<String, GitError> {
    Ok(single_line(&scratch.run(WORK_INDEX, ["write-tree", "--missing-ok"], b"")?))
}

/// Writes an index as a tree; `None` if it has conflicts.
pub(crate) fn write_index_tree(scratch: &Scratch, index: &str) -> Result<Option<String>, GitError> {
    match scratch.run(index, ["write-tree", "--missing-ok"], b"") {
        Ok(tree) => Ok(Some(single_line(&tree))),
        Err(error) => match scratch.run(index, ["ls-files", "-z", "--unmerged"], b"")?.is_empty() {
            true => Err(error),
            false => Ok(None),
        },
    }
}
