//! Errors of running git and of restoring a work tree.
//!
//! Messages name the git command or the path. Exit codes and hints are decided by the caller.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) type Result<T, E = GitError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("could not start git: {source}")]
    Spawn { source: io::Error },
    #[error("git {command} did not finish within {} s and was killed", limit.as_secs())]
    TimedOut { command: String, limit: Duration },
    #[error("git {command} was cancelled")]
    Cancelled { command: String },
    #[error("git {command} printed more than {limit} bytes and was killed")]
    TooMuchOutput { command: String, limit: usize },
    #[error("git {command} failed: {stderr}")]
    Failed { command: String, exit: Option<i32>, stderr: String },
    #[error("git {command}: unexpected output")]
    UnexpectedOutput { command: &'static str },
    #[error("too many files would have to be left out: {count}")]
    TooManyLeftOut { count: usize },
    #[error("a restore point named {reference} already exists")]
    NameTaken { reference: String },
    #[error(
        "{} has no .git: the repository configures a work tree elsewhere, which is not supported",
        top_level.display()
    )]
    WorkTreeElsewhere { top_level: PathBuf },
    #[error("cannot {doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl GitError {
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> GitError {
        let path = path.into();
        move |source| GitError::Io { doing, path, source }
    }

    pub(crate) const fn unexpected(command: &'static str) -> GitError {
        GitError::UnexpectedOutput { command }
    }

    /// Whether git failed because the directory is not in a work tree.
    pub(crate) fn is_no_work_tree(&self) -> bool {
        matches!(self, GitError::Failed { stderr, .. }
            if stderr.contains("not a git repository") || stderr.contains("must be run in a work tree"))
    }
}

/// `None` if git failed.
pub(crate) fn unless_failed<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(GitError::Failed { .. }) => Ok(None),
        result => result.map(Some),
    }
}

/// What changes a work tree, its index or its branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Operation {
    #[error("apply")]
    Apply,
    #[error("restore")]
    Restore,
    #[error("branch")]
    Branch,
}

/// Why a work tree was not changed. Unless the variant is [`WriteError::TakenBackInPart`] or
/// [`WriteError::Incomplete`], nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(
        "another git command is running in {}: {} exists. Wait for it, or remove that file if none is running",
        top_level.display(), lock.display()
    )]
    IndexLocked { top_level: PathBuf, lock: PathBuf },
    #[error("another apply or restore is running in {}; wait for it and try again", top_level.display())]
    Busy { top_level: PathBuf },
    #[error("{what} changed meanwhile, so nothing was changed. Try again")]
    ConcurrentChange { what: String },
    #[error(
        "{what}, so the changes were taken back, except in {}: what was edited meanwhile stays as it is. The state before is \
         stored as {point}. Check these files and try again", edited.join(", ")
    )]
    TakenBackInPart { what: String, edited: Vec<String>, point: String },
    #[error(
        "the {operation} is incomplete ({problem}); the state before it is stored as {point}. The next apply or restore here \
         finishes it"
    )]
    Incomplete { operation: Operation, problem: String, point: String },
    #[error(
        "another version of mcp-delegator was killed while it changed {}. The files that it replaced are in {}: finish with \
         that version, or move this directory away and try again", top_level.display(), dir.display()
    )]
    ForeignJournal { top_level: PathBuf, dir: PathBuf },
}

impl WriteError {
    pub(crate) fn changed_file(path: &str) -> WriteError {
        WriteError::ConcurrentChange { what: format!("the file {path}") }
    }

    pub fn has_changed_files(&self) -> bool {
        matches!(self, WriteError::TakenBackInPart { .. } | WriteError::Incomplete { .. })
    }
}

/// Why a work tree was not restored. Unless the variant is [`RestoreError::Write`], nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("{} is not the work tree of the restore point: {problem}", top_level.display())]
    DifferentRepository { top_level: PathBuf, problem: &'static str },
    #[error("the restore point {reference} is missing or was changed")]
    PointMissing { reference: String },
    #[error("{path} blocks the restore and must not be removed: {problem}. Move it away and try again")]
    PathBlocked { path: String, problem: &'static str },
    #[error(
        "the state of {} after the task is not stored, because its supervisor was killed or the changes could not be \
         examined; so its changes cannot be distinguished from later ones",
        top_level.display()
    )]
    NoEndState { top_level: PathBuf },
    #[error(
        "the state of {} after the restore is not stored, because the restore did not finish; so its changes cannot be \
         distinguished from later ones",
        top_level.display()
    )]
    UnfinishedRestore { top_level: PathBuf },
    #[error(
        "the state of the work tree after the task or restore is stored in {}, but {problem}; so its changes cannot be \
         distinguished from later ones",
        file.display()
    )]
    UnreadableEndState { file: PathBuf, problem: EndStateProblem },
    #[error(
        "the branch {branch} is checked out in {worktree}; check out another branch there, or restore the files only"
    )]
    CheckedOutElsewhere { branch: String, worktree: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndStateProblem {
    #[error("the file is damaged")]
    Damaged,
    #[error("it has format version {found}, and this version of mcp-delegator reads only version {known}")]
    OtherVersion { found: u32, known: u32 },
}
