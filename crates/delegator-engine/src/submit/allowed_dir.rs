//! Checks that a directory may be used by a task: it exists and lies in one of the configured `allowed_roots`.
//!
//! The check runs three times: in validation, so that the caller can correct the request; at submission; and when the
//! task starts, because a name may refer to another directory by then.

use std::path::{Path, PathBuf};

use crate::error::DirectoryProblem;

/// The canonical path of a directory that a task may use.
pub fn resolve_allowed_dir(path: &Path, roots: &[PathBuf]) -> Result<PathBuf, DirectoryProblem> {
    let real = path.canonicalize()?;
    if !real.is_dir() {
        return Err(DirectoryProblem::NotADirectory);
    }
    check_within(&real, roots)?;
    Ok(real)
}

/// Without roots every directory is allowed. Roots are resolved before the comparison.
pub(crate) fn check_within(real: &Path, roots: &[PathBuf]) -> Result<(), DirectoryProblem> {
    match is_within(real, roots) {
        true => Ok(()),
        false => Err(DirectoryProblem::OutsideRoots { roots: roots.to_vec() }),
    }
}

/// Whether a resolved path is inside one of the roots; true if there are none.
pub(crate) fn is_within(real: &Path, roots: &[PathBuf]) -> bool {
    let is_below = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    roots.is_empty() || roots.iter().any(is_below)
}
