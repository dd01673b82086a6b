//! The text of a diff between two trees.

use crate::error::{GitError, Result};
use crate::run::Call;
use crate::scratch::Scratch;

/// A diff may be larger than other output: binary files at the limit above need a quarter more.
const EXTRA_DIFF_BYTES: usize = 192 << 20;

#[derive(Debug, PartialEq, Eq)]
pub enum DiffText {
    Complete(Vec<u8>),
    /// It is larger than this many bytes.
    TooLarge(usize),
}

impl DiffText {
    /// Empty if nothing changed or if there are too many bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            DiffText::Complete(bytes) => bytes,
            DiffText::TooLarge(_) => &[],
        }
    }

    pub fn has_changes(&self) -> bool {
        *self != DiffText::Complete(Vec::new())
    }
}

/// The diff of two trees, with full object ids and binary files. Nothing that attributes or settings name is
/// run.
pub(crate) fn tree_diff(scratch: &Scratch, before: &str, after: &str, options: &[&str]) -> Result<DiffText> {
    let args = ["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv"];
    let call = scratch.call("none", args.iter().chain(options).chain(&[before, after]));
    diff_text(scratch.run_call(Call { extra_output: EXTRA_DIFF_BYTES, ..call }))
}

fn diff_text(output: Result<Vec<u8>>) -> Result<DiffText> {
    match output {
        Err(GitError::TooMuchOutput { limit, .. }) => Ok(DiffText::TooLarge(limit)),
        output => Ok(DiffText::Complete(output?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_beyond_the_limit_is_no_error() {
        let too_large = GitError::TooMuchOutput { command: "diff-tree".to_owned(), limit: 7 };
        assert_eq!(diff_text(Err(too_large)).unwrap(), DiffText::TooLarge(7));
        assert!(diff_text(Err(GitError::Cancelled { command: "diff-tree".to_owned() })).is_err());
    }
}
