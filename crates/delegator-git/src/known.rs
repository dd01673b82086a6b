//! The entries of an index: their objects, the flags that hide files from git, submodules.
//!
//! Two flags make git pretend that a file is unchanged: `assume-unchanged` and `skip-worktree`. The second one also
//! marks what a sparse checkout keeps off the disk. In a copy of the index both can be cleared for files that are on
//! disk, so that a later comparison examines them like any other.

use std::collections::BTreeSet;
use std::fs;

use crate::error::GitError;
use crate::listing::{GITLINK, RepoPath, joined, on_disk, records};
use crate::scratch::Scratch;

#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Sorted by bytes, as git lists them.
    paths: Vec<RepoPath>,
    /// Object and path of every regular file that git expects on disk.
    files: Vec<(String, RepoPath)>,
    assumed_unchanged: Vec<RepoPath>,
    /// Marked skip-worktree, and on disk all the same.
    skipped_on_disk: Vec<RepoPath>,
    /// Marked skip-worktree, and not on disk.
    pub(crate) sparse: BTreeSet<RepoPath>,
    pub(crate) submodules: Vec<RepoPath>,
}

impl Known {
    pub(crate) fn of(scratch: &Scratch, index: &str) -> Result<Known, GitError> {
        let unreadable = || GitError::Unreadable { command: "ls-files" };
        let listed = scratch.run(index, ["ls-files", "-z", "-v", "--stage"], b"")?;
        let mut known = Known::default();
        // `H 100644 <id> 0<TAB>path`; a lower-case letter means assume-unchanged, `S` or `s` skip-worktree.
        for record in records(&listed) {
            let at = record.iter().position(|byte| *byte == b'\t').ok_or_else(unreadable)?;
            let facts = std::str::from_utf8(&record[..at]).map_err(|_| unreadable())?;
            let path = record[at + 1..].to_vec();
            let words: Vec<&str> = facts.split(' ').collect();
            let [tag, mode, id, stage] = words.as_slice() else { return Err(unreadable()) };
            let is_skipped = tag.eq_ignore_ascii_case("S");
            let is_sparse = is_skipped && !is_on_disk(scratch, &path);
            if is_sparse {
                known.sparse.insert(path.clone());
            } else if *mode == GITLINK {
                known.submodules.push(path.clone());
            } else if mode.starts_with("100") && *stage == "0" {
                known.files.push(((*id).to_owned(), path.clone()));
            }
            if is_skipped && !is_sparse {
                known.skipped_on_disk.push(path.clone());
            }
            if tag.starts_with(|letter: char| letter.is_ascii_lowercase()) {
                known.assumed_unchanged.push(path.clone());
            }
            known.paths.push(path);
        }
        Ok(known)
    }

    pub(crate) fn contains(&self, path: &RepoPath) -> bool {
        self.paths.binary_search(path).is_ok()
    }

    /// Clears the flags that hide files which are on disk. `index` is a copy of ours.
    pub(crate) fn unhide(&self, scratch: &Scratch, index: &str) -> Result<(), GitError> {
        for (flag, paths) in [
            ("--no-assume-unchanged", &self.assumed_unchanged),
            ("--no-skip-worktree", &self.skipped_on_disk),
        ] {
            if !paths.is_empty() {
                let paths = joined(paths.iter().map(Vec::as_slice));
                scratch.run(index, ["update-index", "-z", flag, "--stdin"], &paths)?;
            }
        }
        Ok(())
    }

    /// Files that are longer or shorter than their objects.
    pub(crate) fn converted(&self, scratch: &Scratch, index: &str) -> Result<Vec<RepoPath>, GitError> {
        let mut ids = Vec::new();
        for (id, _) in &self.files {
            ids.extend_from_slice(id.as_bytes());
            ids.push(b'\n');
        }
        let sizes = scratch.run(index, ["cat-file", "--buffer", "--batch-check=%(objectsize)"], &ids)?;
        let sizes = String::from_utf8_lossy(&sizes);
        let top = &scratch.repository.top_level;
        let differs = |size: &str, path: &RepoPath| {
            fs::symlink_metadata(on_disk(top, path))
                .is_ok_and(|found| found.is_file() && size.parse() != Ok(found.len()))
        };
        let files = sizes.lines().zip(&self.files);
        Ok(files.filter(|(size, (_, path))| differs(size, path)).map(|(_, (_, path))| path.clone()).collect())
    }
}

/// Whether a submodule has been checked out: then a repository of its own is there.
pub(crate) fn is_checked_out(scratch: &Scratch, submodule: &RepoPath) -> bool {
    is_on_disk(scratch, &[submodule, b"/.git".as_slice()].concat())
}

fn is_on_disk(scratch: &Scratch, path: &RepoPath) -> bool {
    fs::symlink_metadata(on_disk(&scratch.repository.top_level, path)).is_ok()
}
