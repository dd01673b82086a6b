//! The complete state of a work tree: what git captures, and the directories and permissions that git does
//! not record.
//!
//! Also lists the files and directories of a tree. Changes nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use super::left_out::Limits;
use super::survey::{KnownDirectories, Survey};
use super::work_tree::{Capture, Purpose, capture};
use crate::error::{GitError, WriteError};
use crate::file_version::{GITLINK, TreeFiles};
use crate::index::{Entry, IndexFile};
use crate::records::{RepoPath, ancestors, on_disk, with_trailing_slash};
use crate::scratch::{Scratch, tree_files};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) captured: Capture,
    pub(crate) index: IndexFile,
    pub(crate) survey: Survey,
    /// Index entries that are not on disk, because of a sparse checkout or `skip-worktree`; a directory ends
    /// in a slash.
    pub(crate) absent: BTreeSet<RepoPath>,
    /// Files that a restore is about to write. An undo must examine them even if they are ignored.
    pub(crate) about_to_write: Vec<RepoPath>,
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
        if IndexFile::read(scratch)?.entries != self.index.entries {
            return Err(WriteError::ConcurrentChange { what: "the index".to_owned() });
        }
        Ok(())
    }
}

fn absent(top_level: &Path, index: &IndexFile) -> BTreeSet<RepoPath> {
    let skipped = index.entries.iter().filter(|entry| entry.skip_worktree);
    let skipped = skipped.filter(|entry| fs::symlink_metadata(on_disk(top_level, &entry.path)).is_err());
    let path = |entry: &Entry| {
        let lacks_slash = entry.is_directory() && !entry.path.ends_with(b"/");
        if lacks_slash { with_trailing_slash(&entry.path) } else { entry.path.clone() }
    };
    skipped.map(path).collect()
}

/// Whether a file is among the entries that are not on disk.
pub(crate) fn is_absent(absent: &BTreeSet<RepoPath>, path: &[u8]) -> bool {
    let is_below = |above: &[u8]| absent.contains([above, b"/"].concat().as_slice());
    absent.contains(path) || (!absent.is_empty() && ancestors(path).any(is_below))
}

/// More than for creating a restore point: a restore should be complete.
pub(crate) const SURVEY_TIME: Duration = Duration::from_secs(60);

/// Captures the present state; also returns the files of its tree that are on disk.
pub(crate) fn capture_present(
    scratch: &Scratch,
    needed: &BTreeSet<RepoPath>,
) -> Result<(State, TreeFiles), GitError> {
    let index = IndexFile::read(scratch)?;
    let captured = capture(scratch, Limits::default(), needed, Purpose::Restore)?;
    let mut now = tree_files(scratch, &captured.tree)?;
    let known = known_directories(now.iter().map(|(path, (mode, _))| (path, mode == GITLINK)));
    let present = State::of(scratch, captured, index, &known, SURVEY_TIME);
    now.retain(|path, _| !is_absent(&present.absent, path));
    Ok((present, now))
}
