//! What can go wrong, with the facts whoever stands at the door needs to say it.

use std::io;
use std::path::PathBuf;

use delegator_domain::task::{Mode, State, TaskId};
use delegator_git::RestoreError;
use delegator_registry::RegistryError;
use delegator_supervisor::agent::{LocateError, PlanError, VariableAccess};

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("there is no task {given}")]
    UnknownTask { given: String },
    #[error("{given:?} is no task's id, nor the beginning of one")]
    InvalidTaskId { given: String },
    #[error("{given} is the beginning of several tasks")]
    AmbiguousTask { given: String, candidates: Vec<TaskId> },
    #[error("there is no thread {given}")]
    UnknownThread { given: String },
    #[error("task {task} is {}", state.public_name())]
    NotEnded { task: TaskId, state: State },
    #[error("task {task} has ended: it is {}", state.public_name())]
    AlreadyEnded { task: TaskId, state: State },
    #[error("mode {} is not allowed here; the configured max_mode is {}", asked.name(), allowed.name())]
    ModeTooWide { asked: Mode, allowed: Mode },
    #[error("env_allow_list names {name}, which the agent is not given")]
    VariableNotAllowed { name: String, right: VariableAccess },
    #[error("this would be a task at depth {depth}; the configured max_depth is {allowed}")]
    NestingTooDeep { depth: u32, allowed: u32 },
    #[error(
        "task {parent} has as many tasks running or waiting as the configured max_children ({allowed}) allows"
    )]
    TooManyChildren { parent: String, allowed: usize },
    #[error("{} cannot be used as {input}: it {problem}", path.display())]
    UnusableDirectory { input: &'static str, path: PathBuf, problem: DirectoryProblem },
    #[error(
        "{} cannot be used as {input} by a task that writes: it holds or lies in {}, which belongs to mcp-delegator",
        path.display(), own.display()
    )]
    ReservedDirectory { input: &'static str, path: PathBuf, own: PathBuf },
    #[error("{} cannot be used as {input}: it {problem}", path.display())]
    UnusableFile { input: &'static str, path: PathBuf, problem: FileProblem },
    #[error("the agent cannot be run: {0}")]
    Agent(#[from] LocateError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("the verify command cannot be run in a sandbox: {problem}")]
    NoSandbox { problem: String },
    #[error("the launch file of {task} cannot be used: {detail}")]
    Launch { task: TaskId, detail: String },
    #[error("{} cannot be imported: {problem}", path.display())]
    NotImportable { path: PathBuf, problem: String },
    #[error("no restore point was kept for task {task}{}", problem.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    NoRestorePoint { task: TaskId, problem: Option<String> },
    #[error("task {task} is unknown here, and the repository of {} has no restore point of it", place.display())]
    RestorePointNotFound { task: TaskId, place: PathBuf },
    #[error("{} could not be restored: {source}{}", failed.display(), other_trees(restored, untouched))]
    RestoreIncomplete {
        restored: Vec<PathBuf>,
        failed: PathBuf,
        untouched: Vec<PathBuf>,
        source: RestoreError,
    },
    #[error("task {busy} may write in {}", top_level.display())]
    WorkTreeBusy { busy: TaskId, state: State, top_level: PathBuf },
    #[error(
        "the clock moved by {} hours against the time since boot, so what is old cannot be told; nothing was deleted",
        by_ms / (60 * 60 * 1000)
    )]
    ClockJumped { by_ms: i64 },
    #[error("git cannot be run: {0}")]
    NoGit(LocateError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error("no random numbers can be had: {detail}")]
    Randomness { detail: String },
    #[error("tasks cannot be watched: {detail}")]
    WatchFailed { detail: String, os_error: Option<i32> },
    #[error("cannot {doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
}

fn other_trees(restored: &[PathBuf], untouched: &[PathBuf]) -> String {
    let list = |trees: &[PathBuf]| {
        let names: Vec<String> = trees.iter().map(|tree| tree.display().to_string()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    format!("; restored before that: {}; not touched: {}", list(restored), list(untouched))
}

impl EngineError {
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> EngineError {
        move |source| EngineError::Io { doing, source }
    }

    /// The operating system's number of the I/O error that caused this one.
    pub fn os_error(&self) -> Option<i32> {
        if let EngineError::WatchFailed { os_error, .. } = self {
            return *os_error;
        }
        let mut cause: Option<&(dyn std::error::Error + 'static)> = match self {
            EngineError::UnusableDirectory { problem: DirectoryProblem::Unusable(error), .. } => Some(error),
            other => Some(other),
        };
        while let Some(error) = cause {
            if let Some(number) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
                return Some(number);
            }
            cause = error.source();
        }
        None
    }
}

/// Why a directory will not do.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryProblem {
    #[error("does not exist")]
    Missing,
    #[error("is not a directory")]
    NotADirectory,
    #[error("cannot be used: {0}")]
    Unusable(io::Error),
    #[error("is outside the configured allowed_roots")]
    OutsideRoots { roots: Vec<PathBuf> },
}

impl From<io::Error> for DirectoryProblem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => DirectoryProblem::Missing,
            io::ErrorKind::NotADirectory => DirectoryProblem::NotADirectory,
            _ => DirectoryProblem::Unusable(error),
        }
    }
}

/// Why a file cannot be read for a caller.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    #[error("does not exist")]
    Missing,
    #[error("is not a file")]
    NotAFile,
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("is outside the configured allowed_roots")]
    OutsideRoots { roots: Vec<PathBuf> },
    #[error("is inside the state directory of mcp-delegator")]
    OwnState,
}

impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileProblem::Missing,
            _ => FileProblem::Unreadable(error),
        }
    }
}
