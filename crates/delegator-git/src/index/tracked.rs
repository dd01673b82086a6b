//! The entries of an index: objects, submodules, and flags that hide files from git.
//!
//! Two flags make git treat a file as unchanged: `assume-unchanged` and `skip-worktree`. The second also
//! marks files that a sparse checkout leaves off the disk. In our copy of the index both are cleared for
//! files that are on disk, so that a comparison examines them. The user's index is never changed.

use std::collections::BTreeSet;
use std::fs;

use super::file::{IndexEntry, IndexFile};
use crate::error::Result;
use crate::records::{FileVersion, RepoPath, lines, output_text};
use crate::scratch::{Scratch, WORK_INDEX};

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
    /// Reads our copy. A split or sparse index is first rewritten as one complete file.
    pub(crate) fn read(scratch: &Scratch) -> Result<TrackedFiles> {
        let mut index = IndexFile::read_copy(scratch, WORK_INDEX)?;
        if index.is_abridged() {
            let rewrite = ["update-index", "--no-split-index", "--force-write-index"];
            scratch.run(WORK_INDEX, rewrite, b"")?;
            index = IndexFile::read_copy(scratch, WORK_INDEX)?;
        }
        let mut tracked = TrackedFiles { index, ..TrackedFiles::default() };
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

    /// Clears the flags that hide files on disk.
    pub(crate) fn unhide(&self, scratch: &Scratch) -> Result<()> {
        scratch.update_index(WORK_INDEX, &["--no-assume-unchanged"], &self.assumed_unchanged)?;
        scratch.update_index(WORK_INDEX, &["--no-skip-worktree"], &self.skipped_on_disk)
    }

    /// Files whose size differs from the size of their object, because git converts them.
    pub(crate) fn converted(&self, scratch: &Scratch) -> Result<Vec<RepoPath>> {
        let is_expected_file =
            |entry: &&IndexEntry| entry.is_file() && entry.stage == 0 && !self.sparse.contains(&entry.path);
        let files: Vec<&IndexEntry> = self.index.entries.iter().filter(is_expected_file).collect();
        let ids = lines(files.iter().map(|entry| entry.id()));
        let args = ["cat-file", "--buffer", "--batch-check=%(objectsize)"];
        let sizes = output_text(&scratch.run(WORK_INDEX, args, ids.as_bytes())?);
        let differs = |size: &str, entry: &IndexEntry| {
            fs::symlink_metadata(scratch.on_disk(&entry.path))
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

/// Whether a submodule is checked out, that is, has a `.git` of its own.
pub(crate) fn is_checked_out(scratch: &Scratch, submodule: &RepoPath) -> bool {
    is_on_disk(scratch, &[submodule, b"/.git".as_slice()].concat())
}

fn is_on_disk(scratch: &Scratch, path: &RepoPath) -> bool {
    fs::symlink_metadata(scratch.on_disk(path)).is_ok()
}
