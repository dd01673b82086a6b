//! Why a task cannot work in a worktree, or a worktree cannot be used.

use delegator_domain::task::TaskId;
use delegator_git::WorktreeError;

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
    /// Removing worktrees without changes was not enough.
    #[error("the worktrees of tasks take {used} bytes, and worktree_quota_bytes is {quota}")]
    QuotaExceeded { used: u64, quota: u64, oldest: Vec<TaskId> },
}
