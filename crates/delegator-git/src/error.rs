//! Errors of running git and of restoring a work tree.
//!
//! Messages name the git command or the path. Exit codes and hints are decided by the caller.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git cannot be started: {source}")]
    Spawn { source: io::Error },
    #[error("git {command} did not end within {} s", limit.as_secs())]
    TimedOut { command: String, limit: Duration },
    #[error("git {command} said more than {limit} bytes")]
    TooMuchOutput { command: String, limit: usize },
    #[error("git {command}: {words}")]
    Failed { command: String, exit: Option<i32>, words: String },
    #[error("git {command} gave an answer that cannot be read")]
    UnexpectedOutput { command: &'static str },
    #[error("{count} files would have to be left out")]
    TooManyLeftOut { count: usize },
    #[error("a restore point named {reference} exists already")]
    NameTaken { reference: String },
    #[error("the work tree {} is not beside its repository", top_level.display())]
    WorkTreeElsewhere { top_level: PathBuf },
    #[error("cannot {doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl GitError {
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> GitError {
        let path = path.into();
        move |source| GitError::Io { doing, path, source }
    }

    /// Whether git failed because the directory is not in a work tree.
    pub(crate) fn is_no_work_tree(&self) -> bool {
        matches!(self, GitError::Failed { words, .. }
            if words.contains("not a git repository") || words.contains("must be run in a work tree"))
    }
}

/// Why a work tree was not restored. Unless the variant is [`RestoreError::Incomplete`], nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{} is not the work tree the restore point was made of: {problem}", top_level.display())]
    DifferentRepository { top_level: PathBuf, problem: &'static str },
    #[error("the restore point {reference} is gone or was changed")]
    PointMissing { reference: String },
    #[error("another git command is at work in {}: {} is there", top_level.display(), lock.display())]
    IndexLocked { top_level: PathBuf, lock: PathBuf },
    #[error("{path} stands in the way and is not ours to remove: {problem}")]
    PathBlocked { path: String, problem: &'static str },
    #[error("{what} was changed while the restore was being prepared")]
    ConcurrentChange { what: String },
    #[error("the branch {branch} is checked out in {worktree}")]
    CheckedOutElsewhere { branch: String, worktree: String },
    #[error("only a part was brought back ({}); the state before is kept as {undo}", problem)]
    Incomplete { problem: String, undo: String },
}
