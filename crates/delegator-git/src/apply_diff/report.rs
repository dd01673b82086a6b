//! What applying a diff does or would do, and why it is refused.
//!
//! Paths are bytes relative to the top of the work tree. Exit codes and hints are decided by the caller.

use std::fmt;
use std::path::PathBuf;

use crate::diff::{ChangeKind, HunkRange};
use crate::error::{GitError, WriteError};
use crate::records::display_path;

const NAMED_HUNKS: usize = 5;

/// What a diff changes in a work tree. If there are conflicts, nothing may be changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyReport {
    pub files: Vec<AppliedFile>,
    /// Files that already are as the diff makes them.
    pub already_applied: Vec<Vec<u8>>,
    pub conflicts: Vec<Conflict>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedFile {
    pub path: Vec<u8>,
    pub change: ChangeKind,
    /// The file had other changes, which were retained.
    pub merged: bool,
}

/// A file that cannot be changed as the diff demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub path: Vec<u8>,
    pub reason: ConflictReason,
    /// The hunks that do not apply; empty if the whole file is in conflict.
    pub hunks: Vec<HunkRange>,
}

impl Conflict {
    pub(crate) fn new(path: &[u8], reason: ConflictReason) -> Conflict {
        Conflict { path: path.to_vec(), reason, hunks: Vec::new() }
    }

    pub fn explanation(&self) -> String {
        let hunks: Vec<String> = self.hunks.iter().take(NAMED_HUNKS).map(ToString::to_string).collect();
        match self.hunks.len().saturating_sub(hunks.len()) {
            _ if hunks.is_empty() => self.reason.to_string(),
            0 => format!("{} ({})", self.reason, hunks.join(", ")),
            more => format!("{} ({} and {more} more)", self.reason, hunks.join(", ")),
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", display_path(&self.path), self.explanation())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ConflictReason {
    #[error("the lines that the diff changes are different here")]
    DoesNotMatch,
    #[error("the diff deletes it, and it was changed here")]
    ChangedAndDeleted,
    #[error("it does not exist here")]
    Missing,
    #[error("the diff creates it, and it exists with other content")]
    AlreadyExists,
    #[error("the diff would overwrite this untracked file")]
    Untracked,
    #[error("the diff would overwrite this ignored file")]
    Ignored,
    #[error("a binary file whose content is not in the diff")]
    BinaryWithoutContent,
    #[error("its path leads out of the work tree")]
    OutsideWorkTree,
    #[error("its path leads into a git directory")]
    GitDirectory,
    #[error("its path leads through a symbolic link")]
    BehindSymlink,
    #[error("it is a submodule, or in another repository")]
    Submodule,
    #[error("a directory has this name")]
    DirectoryInTheWay,
    #[error("a file has the name of its directory")]
    FileInTheWay,
    #[error("the diff changes it twice")]
    ChangedTwice,
    #[error("it cannot be determined whether it has the change already")]
    Ambiguous,
    #[error("it cannot be read")]
    Unreadable,
}

/// Why a diff was not applied. Unless the variant is [`ApplyError::Write`], nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("{} is not in a git work tree", dir.display())]
    NoWorkTree { dir: PathBuf },
    #[error("the diff is empty")]
    EmptyDiff,
    #[error("the text is not a diff")]
    NotADiff,
    #[error("the diff cannot be read: {problem}")]
    MalformedDiff { problem: String },
    #[error("{} of the files that the diff changes have conflicts; nothing was changed", conflicts.len())]
    Conflicts { conflicts: Vec<Conflict> },
    #[error("the changes cannot be committed: {problem}; nothing was changed")]
    CannotCommit { problem: String },
}
