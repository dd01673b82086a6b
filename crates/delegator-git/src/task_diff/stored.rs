//! What a task changed in the user's work tree, as a diff: from its restore point to the state stored after
//! it, or to the present state while it runs.
//!
//! Only changed files are compared, in two trees built in a git directory of ours, so nothing that the
//! repository configures is run, and the time does not grow with the repository's history. Changes that are
//! not attributed to the agent and files whose content is not stored are left out and named. Adds nothing to
//! the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::capture::{LeftOut, LeftOutReason, capture_present, is_absent};
use crate::error::{GitError, RestoreError, Result};
use crate::records::{FileVersion, GITLINK, RepoPath, TreeFiles, display_path};
use crate::restore_point::{EndState, RestorePoint, SavedState};
use crate::run::{Call, Git};
use crate::scratch::Scratch;

#[derive(Debug)]
pub struct TreeDiff {
    pub diff: DiffText,
    /// Changed files that are not in it, because their content is unknown.
    pub left_out: Vec<LeftOut>,
    /// Files that changed during the task and are not in it, because nothing attributes the change to the
    /// agent.
    pub unattributed: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffPaths {
    /// Relative to the top of the work tree.
    Relative,
    /// Absolute, for the diff of several work trees. Renames are not detected, because git prints them with
    /// relative names.
    Absolute,
}

/// A changed file: the version before and after, `None` where it did not exist.
type Versions = (Option<FileVersion>, Option<FileVersion>);

/// What the agent of an ended task changed; `None` if the state after the task is not stored.
pub fn diff_of_task(
    git: &Git,
    point: &RestorePoint,
    paths: DiffPaths,
    temp_dir: &Path,
) -> Result<Option<TreeDiff>, RestoreError> {
    let (scratch, _) = point.open(git, temp_dir)?;
    let Some(end) = EndState::read(&scratch, point)? else { return Ok(None) };
    let mut before = scratch.tree_files(&point.tree)?;
    let unattributed = &end.agent.unattributed;
    let mut changes: BTreeMap<RepoPath, Versions> = BTreeMap::new();
    for (path, after) in end.changed.iter().filter(|(path, _)| !unattributed.contains(*path)) {
        changes.insert(path.clone(), (before.remove(path), after.clone()));
    }
    let attributed_unread = end.unread.iter().filter(|(path, _)| !unattributed.contains(*path));
    let unread = attributed_unread.map(|(path, stamp)| no_content(path, stamp.map_or(0, |stamp| stamp.size)));
    let left_out = unread.collect();
    let changed = end.changed.keys().chain(end.unread.keys());
    let unattributed = changed.filter(|path| unattributed.contains(*path)).map(|path| display_path(path));
    let found = TreeDiff {
        unattributed: unattributed.collect(),
        ..compare(&scratch, point, changes, paths, left_out)?
    };
    Ok(Some(found))
}

/// What changed in the work tree since the restore point, by the agent or by others.
pub fn diff_until_now(
    git: &Git,
    point: &RestorePoint,
    paths: DiffPaths,
    temp_dir: &Path,
) -> Result<TreeDiff, RestoreError> {
    let (scratch, _) = point.open(git, temp_dir)?;
    let saved = SavedState::read(&scratch, point)?;
    let mut before = scratch.tree_files(&point.tree)?;
    before.retain(|path, _| !is_absent(&saved.absent, path));
    let needed: BTreeSet<RepoPath> = before.keys().cloned().collect();
    let (present, now) = capture_present(&scratch, &needed)?;
    let unread = LeftOut::paths(&present.captured.files.left_out);
    let known = LeftOut::paths(&point.left_out);
    let is_compared = |path: &&RepoPath| {
        let versions = [before.get(*path), now.get(*path)];
        let is_submodule = versions.into_iter().flatten().any(|(mode, _)| mode == GITLINK);
        versions[0] != versions[1] && !is_submodule && !unread.contains(display_path(path).as_str())
    };
    let all: BTreeSet<&RepoPath> = before.keys().chain(now.keys()).collect();
    let changed = all.into_iter().filter(is_compared);
    let changes = changed.map(|path| (path.clone(), (before.get(path).cloned(), now.get(path).cloned())));
    let new_left_out =
        present.captured.files.left_out.iter().filter(|entry| !known.contains(entry.path.as_str()));
    let left_out = new_left_out.map(|entry| no_content(entry.path.as_bytes(), entry.bytes)).collect();
    Ok(compare(&scratch, point, changes.collect(), paths, left_out)?)
}

fn no_content(path: &[u8], bytes: u64) -> LeftOut {
    LeftOut::new(path, LeftOutReason::NoContent, bytes)
}

fn compare(
    scratch: &Scratch,
    point: &RestorePoint,
    mut changes: BTreeMap<RepoPath, Versions>,
    paths: DiffPaths,
    mut left_out: Vec<LeftOut>,
) -> Result<TreeDiff> {
    let ids = changes.values().flat_map(|(before, after)| [before, after]).flatten();
    let existing = scratch.existing_objects(ids.map(|(_, id)| id.clone()).collect())?;
    // What was left out of the restore point looks like a new file.
    let excluded = LeftOut::paths(&point.left_out);
    let is_known =
        |version: &Option<FileVersion>| version.as_ref().is_none_or(|(_, id)| existing.contains(id));
    changes.retain(|path, (before, after)| {
        let has_contents =
            is_known(before) && is_known(after) && !excluded.contains(display_path(path).as_str());
        if !has_contents {
            left_out.push(no_content(path, 0));
        }
        has_contents
    });
    left_out.sort_by(|one, other| one.path.cmp(&other.path));
    left_out.dedup_by(|one, other| one.path == other.path);
    if changes.is_empty() {
        let diff = DiffText::Complete(Vec::new());
        return Ok(TreeDiff { diff, left_out, unattributed: Vec::new() });
    }
    let (mut before, mut after) = (TreeFiles::new(), TreeFiles::new());
    for (path, (old, new)) in changes {
        before.extend(old.map(|version| (path.clone(), version)));
        after.extend(new.map(|version| (path.clone(), version)));
    }
    for (index, files) in [("before", &before), ("after", &after)] {
        scratch.fill_index(index, files.iter())?;
    }
    let (before, after) = (scratch.write_tree("before")?, scratch.write_tree("after")?);
    let top_level = point.top_level.display();
    let prefixes = [format!("--src-prefix=a/{top_level}/"), format!("--dst-prefix=b/{top_level}/")];
    let options = match paths {
        DiffPaths::Relative => vec!["--find-renames"],
        DiffPaths::Absolute => vec!["--no-renames", &prefixes[0], &prefixes[1]],
    };
    let diff = tree_diff(scratch, &before, &after, &options)?;
    Ok(TreeDiff { diff, left_out, unattributed: Vec::new() })
}

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
