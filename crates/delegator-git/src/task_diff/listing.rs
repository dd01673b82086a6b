//! The files of a checkout before the agent starts, and what differs from them afterwards.
//!
//! A listing has mode and object id of every file that git does not ignore. A file that is not read, because
//! it is too large or unreadable, has a stamp instead: a change of it cannot be part of a diff, but it is
//! noticed and named.
//!
//! The diff of a task must apply to the commit that it started from, where the edits of the setup script are
//! missing. So they are reverted by a three-way merge: the commit, the state after the setup, the state after
//! the agent. The contents after the setup are stored before the agent starts, in a directory that it does
//! not own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::diff::{FileDecision, decide_file, merge_contents};
use crate::error::{GitError, Result};
use crate::files::Stamp;
use crate::records::{
    FileVersion, GITLINK, RepoPath, TreeFiles, display_path, is_object_id, is_regular, path_records, records,
    split_record,
};
use crate::repository::Store;
use crate::scratch::Scratch;

/// The files of a work tree that git does not ignore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeListing {
    pub(crate) files: TreeFiles,
    /// Files that are too large or unreadable, and repositories.
    pub(crate) unread: BTreeMap<RepoPath, Stamp>,
}

/// How a work tree differs from a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedChanges {
    /// The new version of each changed file; `None` if it was deleted.
    pub(crate) files: BTreeMap<RepoPath, Option<FileVersion>>,
    /// Changed files that were not read, and changed submodules.
    pub(crate) left_out: BTreeSet<RepoPath>,
}

impl TreeListing {
    /// Records that end in NUL: `mode SP id TAB path`, and of files that were not read `stamp TAB path`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let files = self.files.iter().map(|(path, (mode, id))| (format!("{mode} {id}\t"), path));
        let unread = self.unread.iter().map(|(path, stamp)| (stamp.to_text() + "\t", path));
        path_records(files.chain(unread))
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<TreeListing> {
        let unreadable = || GitError::unexpected("ls-tree");
        let mut listing = TreeListing::default();
        for record in records(bytes) {
            let (entry, path) = split_record(record, b'\t').ok_or_else(unreadable)?;
            let path = path.to_vec();
            match (entry.split_once(' '), Stamp::parse(entry)) {
                (_, Some(stamp)) => drop(listing.unread.insert(path, stamp)),
                (Some((mode, id)), None) if mode.len() == 6 && is_object_id(id) => {
                    drop(listing.files.insert(path, (mode.to_owned(), id.to_owned())))
                }
                _ => return Err(unreadable()),
            }
        }
        Ok(listing)
    }

    /// What differs from `before`. `stamp_now` is the present stamp of a file.
    pub(crate) fn changes_since(
        &self,
        before: &TreeListing,
        stamp_now: impl Fn(&RepoPath) -> Option<Stamp>,
    ) -> ListedChanges {
        let mut changes = ListedChanges::default();
        let paths: BTreeSet<&RepoPath> =
            before.files.keys().chain(self.files.keys()).chain(self.unread.keys()).collect();
        for path in paths {
            let unread = self.unread.get(path);
            if unread.is_some_and(|stamp| before.unread.get(path) != Some(stamp)) {
                changes.left_out.insert(path.clone());
            }
            let (old, new) = (before.files.get(path), self.files.get(path));
            // A file that was not read before may be readable now, or small enough, without having changed.
            let is_same = || before.unread.get(path).is_some_and(|stamp| stamp_now(path) == Some(*stamp));
            match new {
                _ if old == new => {}
                None if unread.is_some() => {}
                Some(_) if is_same() => {}
                _ if new.or(old).is_some_and(is_submodule) => drop(changes.left_out.insert(path.clone())),
                _ => drop(changes.files.insert(path.clone(), new.cloned())),
            }
        }
        changes
    }
}

fn is_submodule((mode, _): &FileVersion) -> bool {
    mode == GITLINK
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn version(mode: &str, letter: &str) -> FileVersion {
        (mode.to_owned(), letter.repeat(40))
    }

    fn listing(files: &[(&str, &str)]) -> TreeListing {
        let files = files.iter().map(|(path, letter)| (path.as_bytes().to_vec(), version("100644", letter)));
        TreeListing { files: files.collect(), ..TreeListing::default() }
    }

    fn stamp(size: u64) -> Stamp {
        Stamp::parse(&format!("1 {size} 3 4")).unwrap()
    }

    fn names<'a>(paths: impl IntoIterator<Item = &'a RepoPath>) -> Vec<&'a str> {
        paths.into_iter().map(|path| str::from_utf8(path).unwrap()).collect()
    }

    #[test]
    fn a_listing_is_read_as_it_was_written() {
        let mut sample = listing(&[("a b", "a"), ("d/\u{fc}\n", "b")]);
        sample.unread.insert(b"huge".to_vec(), stamp(7));
        assert_eq!(TreeListing::from_bytes(&sample.to_bytes()).unwrap(), sample);
        for damaged in [&b"nonsense\0"[..], b"1 2\tx\0", b"100644 c0ffee\tx\0", b"1 2 3\tx\0"] {
            assert!(TreeListing::from_bytes(damaged).is_err());
        }
    }

    #[test]
    fn only_changed_files_are_changes() {
        let before = listing(&[("gone", "a"), ("same", "b"), ("changed", "c")]);
        let after = listing(&[("same", "b"), ("changed", "d"), ("new", "e")]);
        let changes = after.changes_since(&before, |_| None);
        assert!(changes.left_out.is_empty());
        assert_eq!(names(changes.files.keys()), ["changed", "gone", "new"]);
        let ids: Vec<Option<&str>> =
            changes.files.values().map(|version| version.as_ref().map(|(_, id)| &id[..1])).collect();
        assert_eq!(ids, [Some("d"), None, Some("e")]);
    }

    #[test]
    fn every_change_that_is_not_in_the_diff_is_named() {
        let mut before = listing(&[("grown", "a")]);
        let mut after = listing(&[("shrunk", "b"), ("untouched", "c")]);
        for (path, size) in [("rewritten", 1), ("shrunk", 1), ("still large", 1), ("untouched", 1)] {
            before.unread.insert(path.as_bytes().to_vec(), stamp(size));
        }
        for (path, size) in [("grown", 9), ("rewritten", 2), ("still large", 1), ("new", 3)] {
            after.unread.insert(path.as_bytes().to_vec(), stamp(size));
        }
        for (path, letters) in [("sub", ("a", "b")), ("same sub", ("a", "a"))] {
            before.files.insert(path.as_bytes().to_vec(), version(GITLINK, letters.0));
            after.files.insert(path.as_bytes().to_vec(), version(GITLINK, letters.1));
        }
        let size_now = |path: &RepoPath| if path == b"shrunk" { 0 } else { 1 };
        let changes = after.changes_since(&before, |path| Some(stamp(size_now(path))));
        assert_eq!(names(&changes.left_out), ["grown", "new", "rewritten", "sub"]);
        assert_eq!(names(changes.files.keys()), ["shrunk"]);
    }
}
