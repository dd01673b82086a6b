//! The complete state of a work tree: what git captures, and the directories and permissions that git does not record.
//!
//! Also lists the files and directories of a tree. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::capture::Capture;
use crate::directory_modes::{KnownDirectories, Survey, ancestors};
use crate::error::{GitError, WriteError};
use crate::index_file::IndexFile;
use crate::listing::{RepoPath, on_disk, records};
use crate::scratch::Scratch;

/// git's mode of a file, and the object id of its content.
pub(crate) type FileVersion = (String, String);

/// The files of a tree.
pub(crate) type TreeFiles = BTreeMap<RepoPath, FileVersion>;

/// Whether it is a file with content of its own, not a link or a submodule.
pub(crate) fn is_regular((mode, _): &FileVersion) -> bool {
    mode.starts_with("100")
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) captured: Capture,
    pub(crate) index: IndexFile,
    pub(crate) survey: Survey,
    /// Index entries that are not on disk, because of a sparse checkout or `skip-worktree`; a directory ends in a
    /// slash.
    pub(crate) absent: BTreeSet<RepoPath>,
    /// Files that a restore is about to write. An undo must examine them even if they are ignored.
    pub(crate) about_to_write: Vec<RepoPath>,
}

/// Every file of a tree, submodules included.
pub(crate) fn tree_files(scratch: &Scratch, tree: &str) -> Result<TreeFiles, GitError> {
    let listed = scratch.run_large(["ls-tree", "-r", "-z", tree], b"")?;
    let mut files = TreeFiles::new();
    for record in records(&listed) {
        let (mode, _, id, path) = parse_tree_entry(record)?;
        files.insert(path, (mode, id));
    }
    Ok(files)
}

/// Parses `mode SP type SP id TAB path`.
fn parse_tree_entry(record: &[u8]) -> Result<(String, String, String, RepoPath), GitError> {
    let unreadable = || GitError::UnexpectedOutput { command: "ls-tree" };
    let at = record.iter().position(|byte| *byte == b'\t').ok_or_else(unreadable)?;
    let header = std::str::from_utf8(&record[..at]).map_err(|_| unreadable())?;
    let fields: Vec<&str> = header.split(' ').collect();
    let [mode, kind, id] = fields.as_slice() else { return Err(unreadable()) };
    Ok(((*mode).to_owned(), (*kind).to_owned(), (*id).to_owned(), record[at + 1..].to_vec()))
}

/// The directories of the files in our copy of the index.
pub(crate) fn directories_of(work_index: &IndexFile) -> KnownDirectories {
    known_directories(work_index.entries.iter().map(|entry| (&entry.path, entry.is_submodule())))
}

/// The directories above these files. Each file has its path and whether it is a submodule.
pub(crate) fn known_directories<'a>(files: impl Iterator<Item = (&'a RepoPath, bool)>) -> KnownDirectories {
    let mut known = KnownDirectories::default();
    for (path, is_submodule) in files {
        if is_submodule {
            known.repositories.insert(path.clone());
        }
        for above in ancestors(path) {
            if !known.with_files.contains(above) {
                known.with_files.insert(above.to_vec());
            }
        }
    }
    known
}

/// Records directories and permissions.
pub(crate) fn take_survey(scratch: &Scratch, known: &KnownDirectories, time: Duration) -> Survey {
    // git creates HEAD with the same umask as files of the work tree.
    let head_file = fs::metadata(scratch.repository.git_dir.join("HEAD"));
    let usual_mode = head_file.map_or(0o644, |found| found.permissions().mode() & 0o666);
    Survey::take(&scratch.repository.top_level, known, usual_mode, time)
}

impl State {
    pub(crate) fn of(
        scratch: &Scratch,
        captured: Capture,
        index: IndexFile,
        known: &KnownDirectories,
        time: Duration,
    ) -> State {
        let survey = take_survey(scratch, known, time);
        let absent = absent(&scratch.repository.top_level, &index);
        State { captured, index, survey, absent, about_to_write: Vec::new() }
    }

    /// What was staged meanwhile is in no restore point.
    pub(crate) fn refuse_if_index_changed(&self, scratch: &Scratch) -> Result<(), WriteError> {
        match IndexFile::read(scratch)?.entries == self.index.entries {
            true => Ok(()),
            false => Err(WriteError::ConcurrentChange { what: "the index".to_owned() }),
        }
    }
}

fn absent(top_level: &Path, index: &IndexFile) -> BTreeSet<RepoPath> {
    let skipped = index.entries.iter().filter(|entry| entry.skip_worktree);
    let skipped = skipped.filter(|entry| fs::symlink_metadata(on_disk(top_level, &entry.path)).is_err());
    let path = |path: &RepoPath, is_directory: bool| match is_directory && !path.ends_with(b"/") {
        true => [path.as_slice(), b"/"].concat(),
        false => path.clone(),
    };
    skipped.map(|entry| path(&entry.path, entry.is_directory())).collect()
}

/// Whether a file is among the entries that are not on disk.
pub(crate) fn is_absent(absent: &BTreeSet<RepoPath>, path: &[u8]) -> bool {
    let is_below = |above: &[u8]| absent.contains([above, b"/"].concat().as_slice());
    absent.contains(path) || (!absent.is_empty() && ancestors(path).any(is_below))
}
