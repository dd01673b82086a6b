//! What differs between the results of two worktrees that began with the same files. The stored diffs are applied to
//! these files in indexes of our own, so the worktrees may be gone.

use std::path::Path;

use super::task_worktree::{CARRIED, TaskWorktree};
use crate::error::{Result, unless_failed};
use crate::repository::open;
use crate::run::Git;
use crate::scratch::Scratch;
use crate::task_diff::{DiffText, tree_diff};

#[derive(Debug, PartialEq, Eq)]
pub enum ResultComparison {
    Diff(DiffText),
    OtherStart,
    /// The files with which they began are not stored any more.
    StartGone,
}

impl TaskWorktree {
    /// What leads from the result of `other` to the own one. `diff` and `other_diff` are those of the two worktrees.
    pub fn compare_results(
        &self,
        diff: &[u8],
        (other, other_diff): (&TaskWorktree, &[u8]),
        git: &Git,
        temp_dir: &Path,
    ) -> Result<ResultComparison> {
        let start = |worktree: &TaskWorktree| -> Result<String> {
            Ok(worktree.start_tree(CARRIED)?.unwrap_or_else(|| worktree.source.commit.clone()))
        };
        let (own_start, other_start) = (start(self)?, start(other)?);
        if own_start != other_start {
            return Ok(ResultComparison::OtherStart);
        }
        let Some(opened) = open(git, &self.source.repository.top_level)? else {
            return Ok(ResultComparison::StartGone);
        };
        let scratch = Scratch::with_config(git, &opened.repository, opened.config, temp_dir)?;
        self.attach_start_objects(&scratch)?;
        let result = |index: &str, diff: &[u8]| -> Result<Option<String>> {
            if unless_failed(scratch.run(index, ["read-tree", &own_start], b""))?.is_none() {
                return Ok(None);
            }
            let apply = ["apply", "--cached", "--whitespace=nowarn", "-"];
            if !diff.is_empty() && unless_failed(scratch.run(index, apply, diff))?.is_none() {
                return Ok(None);
            }
            scratch.read(index, ["write-tree"]).map(Some)
        };
        match (result("from", other_diff)?, result("to", diff)?) {
            (Some(from), Some(to)) => {
                tree_diff(&scratch, &from, &to, &["--find-renames"]).map(ResultComparison::Diff)
            }
            _ => Ok(ResultComparison::StartGone),
        }
    }
}
