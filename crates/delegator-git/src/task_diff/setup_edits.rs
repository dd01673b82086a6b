//! Separates what the agent changed in a file from what the setup script had changed in it before.
//!
//! The diff of a task must apply to the commit that it started from, where the edits of the script are
//! missing. So they are reverted by a three-way merge: the commit, the state after the setup, the state after
//! the agent. Where both changed the same lines that is not possible: then the file has both, and its path is
//! returned. The contents after the setup are stored before the agent starts, in a directory that it does not
//! own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::diff::{FileDecision, decide_file, merge_contents};
use crate::error::Result;
use crate::file_version::{FileVersion, TreeFiles, is_regular};
use crate::records::{RepoPath, display_path};
use crate::repository::Store;
use crate::scratch::Scratch;

/// Stores the contents of the files that differ from the commit `base` and are in it.
pub(crate) fn store_edited_files(
    scratch: &Scratch,
    base: &str,
    files: &TreeFiles,
    store: &Path,
) -> Result<()> {
    let committed = scratch.tree_files(base)?;
    let is_edited = |path: &RepoPath, version: &FileVersion| {
        let before = committed.get(path).filter(|before| is_regular(before));
        is_regular(version) && before.is_some_and(|before| before.1 != version.1)
    };
    let edited = files.iter().filter(|(path, version)| is_edited(path, version));
    let edited: BTreeSet<String> = edited.map(|(_, (_, id))| id.clone()).collect();
    scratch.pack_into(&Store::at(store).objects(), "pack", &edited).map(drop)
}

/// Reverts in the changed files what the setup script changed in them. `scratch` can read the contents after
/// the setup. Returns the paths for which this is not possible.
pub(crate) fn revert_setup_edits(
    scratch: &Scratch,
    base: &str,
    after_setup: &TreeFiles,
    changed: &mut BTreeMap<RepoPath, Option<FileVersion>>,
) -> Result<Vec<String>> {
    let committed = scratch.tree_files(base)?;
    let (mut merges, mut inseparable) = (BTreeMap::new(), Vec::new());
    for (path, version) in changed.iter_mut() {
        let (before, after) = (committed.get(path), after_setup.get(path));
        match decide_file(before, after, version.as_ref()) {
            FileDecision::Same | FileDecision::Later | FileDecision::Revert => {}
            FileDecision::Combine(combined) => *version = Some(combined),
            FileDecision::Merge(merge) => drop(merges.insert(path.clone(), merge)),
            FileDecision::Overlap if [before, after, version.as_ref()].iter().all(Option::is_some) => {
                inseparable.push(display_path(path));
            }
            // One of the two created or deleted the file: its state after the agent is the agent's.
            FileDecision::Overlap => {}
        }
    }
    let merged = merge_contents(scratch, &merges.values().cloned().collect())?;
    for (path, merge) in merges {
        match merged.get(&merge) {
            Some(id) => drop(changed.insert(path, Some((merge.mode, id.clone())))),
            None => inseparable.push(display_path(&path)),
        }
    }
    Ok(inseparable)
}
