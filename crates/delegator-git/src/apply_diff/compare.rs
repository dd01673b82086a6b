//! Compares what two diffs of the same commit lead to. Both are applied to the commit in indexes of our own.

use std::path::Path;

use super::report::ApplyError;
use crate::error::Result;
use crate::repository::{Opened, Store, open};
use crate::run::Git;
use crate::scratch::Scratch;
use crate::task_diff::{DiffText, tree_diff};

#[derive(Debug, Clone, Copy)]
pub struct CommitDiff<'a> {
    pub text: &'a [u8],
    /// The git directory whose objects it names.
    pub store: &'a Path,
}

/// What leads from the files after `from` to those after `to`. `temp_dir` is a directory of ours for temporary files.
pub fn compare_diffs(
    git: &Git,
    work_tree: &Path,
    commit: &str,
    (from, to): (CommitDiff<'_>, CommitDiff<'_>),
    temp_dir: &Path,
) -> Result<DiffText, ApplyError> {
    let Opened { repository, config, .. } =
        open(git, work_tree)?.ok_or_else(|| ApplyError::NoWorkTree { dir: work_tree.to_owned() })?;
    let scratch = Scratch::with_config(git, &repository, config, temp_dir)?;
    let tree = |index: &str, diff: CommitDiff<'_>| -> Result<String> {
        scratch.read_from(&Store::at(diff.store))?;
        scratch.run(index, ["read-tree", commit], b"")?;
        if !diff.text.is_empty() {
            scratch.run(index, ["apply", "--cached", "--whitespace=nowarn", "-"], diff.text)?;
        }
        scratch.read(index, ["write-tree"])
    };
    let trees = (tree("from", from)?, tree("to", to)?);
    Ok(tree_diff(&scratch, &trees.0, &trees.1, &["--find-renames"])?)
}
