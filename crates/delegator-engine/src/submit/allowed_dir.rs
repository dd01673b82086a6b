//! Directories a task may work in, and why another will not do.
//!
//! The same question is asked three times: by whoever wants to know before anything is done, when a task is taken on, and
//! when it starts. The first asks on behalf of a caller who can still mend it; the others, because names may have come to
//! mean something else since.

use std::path::{Path, PathBuf};

use crate::error::DirectoryProblem;

/// The canonical name of a directory a task may work in.
pub fn resolve_allowed_dir(path: &Path, roots: &[PathBuf]) -> Result<PathBuf, DirectoryProblem> {
    let real = path.canonicalize()?;
    if !real.is_dir() {
        return Err(DirectoryProblem::NotADirectory);
    }
    check_within(&real, roots)?;
    Ok(real)
}

/// Without roots every directory will do. Roots are compared by what they really are.
pub(crate) fn check_within(real: &Path, roots: &[PathBuf]) -> Result<(), DirectoryProblem> {
    match is_within(real, roots) {
        true => Ok(()),
        false => Err(DirectoryProblem::OutsideRoots { roots: roots.to_vec() }),
    }
}

/// Whether a resolved path lies in one of the roots; without roots every path does.
pub(crate) fn is_within(real: &Path, roots: &[PathBuf]) -> bool {
    let is_below = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    roots.is_empty() || roots.iter().any(is_below)
}
