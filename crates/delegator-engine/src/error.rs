//! The error type of the engine. Each variant carries what a caller needs to choose an error code and a hint,
//! which are never decided here.

use std::io;
use std::path::PathBuf;

use delegator_domain::budget::BudgetFinding;
use delegator_domain::question::{Question, QuestionNumber};
use delegator_domain::task::{GroupId, Mode, Provider, State, TaskId};
use delegator_git::{ApplyError, Overlap, RestoreError, WorktreeError};
use delegator_registry::{RegistryError, StoredQuestion};
use delegator_supervisor::agent::{LocateError, PlanError, VariableAccess};
use delegator_supervisor::enclosure::Unavailable;

use crate::provider_error::ProviderError;

/// What a restore changed in all work trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RestoreChanges {
    None,
    Files,
    /// Also HEAD or its branch, at least in one work tree.
    FilesAndHead,
}

pub(crate) type Result<T, E = EngineError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("there is no task {given}")]
    UnknownTask { given: String },
    #[error("there is no task in {}", directory.display())]
    NoTaskHere { directory: PathBuf },
    #[error("{given:?} is neither a task id nor the beginning of one")]
    InvalidTaskId { given: String },
    #[error("{given} is the beginning of several ids")]
    AmbiguousTask { given: String, candidates: Vec<String> },
    #[error("there is no group {given}")]
    UnknownGroup { given: String },
    #[error("{group} is a group of {} attempts, but only one task can be given", tasks.len())]
    GroupGiven { group: GroupId, tasks: Vec<TaskId> },
    #[error("there is no thread {given}")]
    UnknownThread { given: String, nearest: Option<String> },
    #[error("thread {given} is archived, so the agent does not resume it")]
    ArchivedThread { given: String, unarchive: String },
    #[error("task {task} has not ended: it is {}", state.public_name())]
    NotEnded { task: TaskId, state: State },
    #[error("task {task} has ended: it is {}", state.public_name())]
    AlreadyEnded { task: TaskId, state: State },
    #[error("mode {} exceeds the configured max_mode, {}", requested.name(), allowed.name())]
    ModeTooWide { requested: Mode, allowed: Mode },
    #[error("env_allow_list names {name}, which is not passed to the agent")]
    VariableNotAllowed { agent: String, name: String, right: VariableAccess },
    #[error("the task would be at nesting depth {depth}; the configured max_depth is {allowed}")]
    NestingTooDeep { depth: u32, allowed: u32 },
    #[error("a budget is exhausted: {finding}")]
    BudgetExhausted { finding: BudgetFinding },
    #[error("task {parent} already has {allowed} running or queued tasks, the configured max_children")]
    TooManyChildren { parent: String, allowed: usize },
    #[error("task {parent}, which would submit the task, does not have the right {right}")]
    ExceedsParent { parent: TaskId, right: String },
    #[error("{} cannot be used as {input}: it {problem}", path.display())]
    UnusableDirectory { input: &'static str, path: PathBuf, problem: DirectoryProblem },
    #[error(
        "{} cannot be used as {input} by a task that writes: it contains or is inside {}, which belongs to mcp-delegator",
        path.display(), own.display()
    )]
    ReservedDirectory { input: &'static str, path: PathBuf, own: PathBuf },
    #[error("{} cannot be used as {input}: it {problem}", path.display())]
    UnusableFile { input: &'static str, path: PathBuf, problem: FileProblem },
    #[error("could not run the agent {name}: {problem}")]
    Agent { name: String, problem: LocateError },
    #[error("nothing enforces mode {} for the agent {agent}: {problem}", mode.name())]
    ModeNotEnforced { agent: String, mode: Mode, problem: Unavailable },
    #[error(
        "the agent {agent} cannot have its state in {}: it contains or is inside {}, which belongs to mcp-delegator",
        path.display(), own.display()
    )]
    ReservedStateDir { agent: String, path: PathBuf, own: PathBuf },
    #[error("the agent {agent} has no threads, so it cannot resume one")]
    NoThreads { agent: String },
    #[error("the agent {agent} does not support {input}")]
    UnsupportedInput { agent: String, input: &'static str },
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("could not run the verify command in a sandbox: {problem}")]
    NoSandbox { problem: String },
    #[error("could not start task {task} from its launch file: {detail}")]
    Launch { task: TaskId, detail: String },
    #[error("could not read {}: {problem}", file.display())]
    StoredRecord { file: PathBuf, problem: String },
    #[error("could not import {}: {problem}", path.display())]
    NotImportable { path: PathBuf, problem: String },
    #[error("task {task} has no restore point{}", problem.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    NoRestorePoint { task: TaskId, problem: Option<String> },
    #[error("there is no diff of task {task}: {reason}")]
    NoDiff { task: TaskId, reason: NoDiff },
    #[error("task {task} is not in the registry, and the repository at {} has no restore point of it", directory.display())]
    RestorePointNotFound { task: TaskId, directory: PathBuf },
    #[error("could not restore {}: {source}{}", failed.display(), other_trees(restored, untouched))]
    RestoreIncomplete {
        restored: Vec<PathBuf>,
        failed: PathBuf,
        untouched: Vec<PathBuf>,
        changes: RestoreChanges,
        source: RestoreError,
    },
    /// Nothing was restored.
    #[error("what would be restored was changed again since, in {} places", overlaps.len())]
    RestoreOverlap {
        /// With absolute paths.
        overlaps: Vec<Overlap>,
    },
    #[error("task {busy} may still write in {}", top_level.display())]
    WorkTreeBusy { busy: TaskId, state: State, top_level: PathBuf },
    #[error(
        "the clock moved by {} hours against the time since boot, so the age of tasks is unknown; nothing was deleted",
        by_ms / (60 * 60 * 1000)
    )]
    ClockJumped { by_ms: i64 },
    #[error("could not run git: {0}")]
    NoGit(LocateError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Isolation(#[from] IsolationError),
    #[error("could not get random numbers: {detail}")]
    Randomness { detail: String },
    #[error("could not watch tasks: {detail}")]
    WatchFailed { detail: String, os_error: Option<i32> },
    #[error("could not {doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
    #[error("{source}")]
    Provider { provider: Provider, task: Option<TaskId>, source: ProviderError },
    /// Occurred while tasks were being ended or deleted; some of them may be.
    #[error(transparent)]
    Cleanup(Box<EngineError>),
}

fn other_trees(restored: &[PathBuf], untouched: &[PathBuf]) -> String {
    let list = |trees: &[PathBuf]| {
        let names: Vec<String> = trees.iter().map(|tree| tree.display().to_string()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    format!("; already restored: {}; not changed: {}", list(restored), list(untouched))
}

impl EngineError {
    pub fn io(doing: &'static str) -> impl FnOnce(io::Error) -> EngineError {
        move |source| EngineError::Io { doing, source }
    }

    /// The task does not exist.
    pub(crate) fn unknown(task: &TaskId) -> EngineError {
        EngineError::UnknownTask { given: task.to_string() }
    }

    /// The error of a provider, about this task if it exists.
    pub(crate) fn provider(
        provider: Provider,
        task: Option<&TaskId>,
    ) -> impl Fn(ProviderError) -> EngineError {
        move |source| EngineError::Provider { provider, task: task.cloned(), source }
    }

    pub(crate) fn in_cleanup(error: EngineError) -> EngineError {
        EngineError::Cleanup(Box::new(error))
    }

    /// The errno of the I/O error that caused this one.
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

/// Why a task may not use a directory.
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

/// Why a file that the caller named is not read.
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

/// Why there is no diff of a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoDiff {
    #[error("{} is not in a git work tree, so the state before the task was not stored", directory.display())]
    NotInGit { directory: PathBuf },
    #[error("the state before the task was not stored: {problem}")]
    NoRestorePoint { problem: String },
    #[error("the restore point of the task was deleted")]
    PointDeleted,
    #[error("the state after the task was not stored")]
    NoEndState,
    #[error("its worktree was removed, and what changed was only there{}", after_colon(names))]
    WorktreeGone { names: String },
    #[error("{problem}")]
    Unreadable { problem: String },
}

fn after_colon(names: &str) -> String {
    if names.is_empty() { String::new() } else { format!(": {names}") }
}

impl From<WorktreeError> for EngineError {
    fn from(error: WorktreeError) -> EngineError {
        IsolationError::Worktree(error).into()
    }
}

/// Why a message was not sent, or a question not answered.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    #[error("the agent {agent} takes no messages")]
    NoMessages { agent: String },
    #[error("the agent {agent} takes no message during a turn")]
    NotSteerable { agent: String },
    #[error("the message has {bytes} bytes; at most {allowed} are allowed")]
    MessageTooLong { bytes: usize, allowed: usize },
    #[error("{allowed} messages to task {task} are not delivered yet, and no more are accepted")]
    TooManyMessages { task: TaskId, allowed: u32 },
    #[error("task {task} has no open question: it is {}", state.public_name())]
    NoOpenQuestion { task: TaskId, state: State },
    #[error("task {task} has no question {}", number.0)]
    UnknownQuestion { task: TaskId, number: QuestionNumber },
    #[error("task {task} cannot answer its own question")]
    OwnQuestion { task: TaskId },
    #[error("task {task} has {} open questions", questions.len())]
    SeveralQuestions { task: TaskId, questions: Vec<Question> },
    #[error("question {} of task {task} is not open: it is {}", question.question.number.0, question.state.name())]
    QuestionClosed { task: TaskId, question: Box<StoredQuestion> },
    #[error("the answer {problem}")]
    InvalidAnswer { question: Box<Question>, problem: AnswerProblem },
}

/// Why an answer does not fit its question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerProblem {
    #[error("is not an option of the question")]
    UnknownOption { given: String },
    #[error("is not accepted: the question has only options")]
    NoFreeText,
    #[error("is empty")]
    Empty,
}

/// Why a task cannot work in a worktree, or a worktree cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IsolationError {
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error("the worktree of task {task} does not exist any more")]
    Gone { task: TaskId },
    #[error("task {busy} works in the worktree of {task} or will")]
    Busy { task: TaskId, busy: TaskId },
    #[error("another command applies or removes the worktree of task {task}, or submits a task into it")]
    Claimed { task: TaskId },
    /// Removing the worktree would lose it.
    #[error("the worktree of task {task} has what exists nowhere else: {names}")]
    OnlyCopy { task: TaskId, names: String },
    #[error("the diff of task {task} is larger than {limit} bytes")]
    DiffTooLarge { task: TaskId, limit: usize },
    #[error("the results of tasks {task} and {other} cannot be compared: {reason}")]
    NotComparable { task: TaskId, other: TaskId, reason: &'static str },
    /// Removing worktrees without changes was not enough.
    #[error("the worktrees of tasks take {used} bytes, and worktree_quota_bytes is {quota}")]
    QuotaExceeded { used: u64, quota: u64, oldest: Vec<TaskId> },
}
