//! Creates a restore point of a work tree before a task, with a baseline of the same state.

use std::collections::BTreeSet;
use std::path::Path;

use super::take::Baseline;
use crate::capture::{Capture, LazyTrees, Limits, Purpose, State, WORK_INDEX, capture, directories_of};
use crate::error::GitError;
use crate::index::IndexFile;
use crate::repository::open;
use crate::restore_point::{CommittedTree, RestorePoint, read_points, record};
use crate::run::Git;
use crate::scratch::Scratch;

/// A restore point and a baseline of the same state.
#[derive(Debug)]
pub struct CreatedPoint {
    pub point: RestorePoint,
    /// An error here does not affect the restore point.
    pub baseline: Result<Baseline, GitError>,
}

/// Creates a restore point of the work tree that contains `dir`; `None` outside a work tree. `temp_dir` is a
/// directory of ours for temporary files, which must exist as long as the baseline. An existing restore point
/// of that name is returned unchanged: an earlier attempt at the same task created it, and it may be the only
/// copy of the state before.
pub fn create_restore_point(
    git: &Git,
    dir: &Path,
    temp_dir: &Path,
    reference: &str,
    limits: Limits,
) -> Result<Option<CreatedPoint>, GitError> {
    let Some(opened) = open(git, dir)? else { return Ok(None) };
    let scratch = Scratch::with_config(git, &opened.repository, opened.config.clone(), temp_dir)?;
    let index = IndexFile::read(&scratch)?;
    let committed = CommittedTree::start(&scratch, &opened.head)?;
    let captured = capture(&scratch, limits, &BTreeSet::new(), Purpose::Save)?;
    let directories = directories_of(&IndexFile::read_copy(&scratch, WORK_INDEX)?);
    let mut state = State::of(&scratch, captured, index, &directories, limits.time);
    let known = read_points(git, &opened.repository, scratch.store(), vec![reference.to_owned()])?;
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
