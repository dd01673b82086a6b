//! The entries of an index: objects, submodules, and flags that hide files from git.
//!
//! Two flags make git treat a file as unchanged: `assume-unchanged` and `skip-worktree`. The second also
//! marks files that a sparse checkout leaves off the disk. In our copy of the index both are cleared for
//! files that are on disk, so that a comparison examines them. The user's index is never changed.

use std::collections::BTreeSet;
use std::fs;

use super::file::{Entry, IndexFile};
use crate::error::GitError;
use crate::file_version::FileVersion;
use crate::records::{RepoPath, join_records, on_disk};
use crate::scratch::Scratch;

#[derive(Debug, Default)]
pub(crate) struct TrackedFiles {
    /// Its entries are sorted by path.
    pub(crate) index: IndexFile,
    assumed_unchanged: Vec<RepoPath>,
    /// Marked skip-worktree, but on disk.
    skipped_on_disk: Vec<RepoPath>,
    /// Marked skip-worktree and not on disk.
    pub(crate) sparse: BTreeSet<RepoPath>,
    pub(crate) submodules: Vec<RepoPath>,
}

impl TrackedFiles {
    /// `index` names one of our copies.
    pub(crate) fn read(scratch: &Scratch, index: &str) -> Result<TrackedFiles, GitError> {
        let mut tracked = TrackedFiles { index: read_complete(scratch, index)?, ..TrackedFiles::default() };
        for entry in &tracked.index.entries {
            if entry.skip_worktree && !is_on_disk(scratch, &entry.path) {
                tracked.sparse.insert(entry.path.clone());
            } else if entry.is_submodule() {
                tracked.submodules.push(entry.path.clone());
            } else if entry.skip_worktree {
                tracked.skipped_on_disk.push(entry.path.clone());
            }
            if entry.assume_unchanged {
                tracked.assumed_unchanged.push(entry.path.clone());
            }
        }
        Ok(tracked)
    }

    pub(crate) fn contains(&self, path: &RepoPath) -> bool {
        self.index.entries.binary_search_by(|entry| entry.path.cmp(path)).is_ok()
    }

    /// Files marked skip-worktree that are on disk, as the index has them.
    pub(crate) fn skipped_on_disk(&self) -> Vec<(RepoPath, FileVersion)> {
        let skipped: BTreeSet<&RepoPath> = self.skipped_on_disk.iter().collect();
        let entries = self.index.entries.iter().filter(|entry| skipped.contains(&entry.path));
        entries.map(|entry| (entry.path.clone(), entry.version())).collect()
    }

    /// Clears the flags that hide files on disk. `index` names one of our copies.
    pub(crate) fn unhide(&self, scratch: &Scratch, index: &str) -> Result<(), GitError> {
        for (flag, paths) in [
            ("--no-assume-unchanged", &self.assumed_unchanged),
            ("--no-skip-worktree", &self.skipped_on_disk),
        ] {
            if !paths.is_empty() {
                let paths = join_records(paths);
                scratch.run(index, ["update-index", "-z", flag, "--stdin"], &paths)?;
            }
        }
        Ok(())
    }

    /// Files whose size differs from the size of their object, because git converts them.
    pub(crate) fn converted(&self, scratch: &Scratch, index: &str) -> Result<Vec<RepoPath>, GitError> {
        let is_expected_file =
            |entry: &&Entry| entry.is_file() && entry.stage == 0 && !self.sparse.contains(&entry.path);
        let files: Vec<&Entry> = self.index.entries.iter().filter(is_expected_file).collect();
        let ids: String = files.iter().map(|entry| entry.id() + "\n").collect();
        let args = ["cat-file", "--buffer", "--batch-check=%(objectsize)"];
        let sizes = scratch.run(index, args, ids.as_bytes())?;
        let sizes = String::from_utf8_lossy(&sizes);
        let top = &scratch.repository.top_level;
        let differs = |size: &str, entry: &Entry| {
            fs::symlink_metadata(on_disk(top, &entry.path))
                .is_ok_and(|found| found.is_file() && size.parse() != Ok(found.len()))
        };
        let converted = sizes.lines().zip(files).filter(|(size, entry)| differs(size, entry));
        Ok(converted.map(|(_, entry)| entry.path.clone()).collect())
    }
}

/// Whether the index has attribute files, which may convert files.
pub(crate) fn has_attributes(index: &IndexFile) -> bool {
    let name = b".gitattributes".as_slice();
    index.entries.iter().any(|entry| entry.path.rsplit(|byte| *byte == b'/').next() == Some(name))
}

/// Reads one of our copies. A split or sparse index is first rewritten as one complete file.
fn read_complete(scratch: &Scratch, index: &str) -> Result<IndexFile, GitError> {
    let mut file = IndexFile::read_copy(scratch, index)?;
    if file.is_abridged() {
        scratch.run(index, ["update-index", "--no-split-index", "--force-write-index"], b"")?;
        file = IndexFile::read_copy(scratch, index)?;
    }
    Ok(file)
}

/// Whether a submodule is checked out, that is, has a `.git` of its own.
pub(crate) fn is_checked_out(scratch: &Scratch, submodule: &RepoPath) -> bool {
    is_on_disk(scratch, &[submodule, b"/.git".as_slice()].concat())
}

fn is_on_disk(scratch: &Scratch, path: &RepoPath) -> bool {
    fs::symlink_metadata(on_disk(&scratch.repository.top_level, path)).is_ok()
}
