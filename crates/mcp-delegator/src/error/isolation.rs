//! Converts errors of worktrees into [`AppError`]: error code, context for programs and a suggestion.

use delegator_domain::task::TaskId;
use delegator_engine::{IsolationError, WorktreeError, WriteError};

use crate::error::apply::write_error;
use crate::error::suggestion::{NextCall, Suggestion};
use crate::error::{AppError, ErrorCode};

fn worktree_error(error: WorktreeError, message: String) -> AppError {
    let refused = |field: &str, suggestion: &str| {
        AppError::new(ErrorCode::InvalidValue, message.clone()).context("field", field).suggest(suggestion)
    };
    match error {
        WorktreeError::NoRepository { .. } => refused(
            "isolation",
            "Run the task without {input:isolation}, or in a git repository: 'git init' creates one.",
        ),
        WorktreeError::NoCommit { .. } => {
            refused("isolation", "Commit something first: a worktree starts from a commit.")
        }
        WorktreeError::UnknownBase { .. } => refused(
            "base",
            "Give a branch, a tag or a commit of this repository; 'git branch -a' lists branches.",
        ),
        WorktreeError::BranchInTheWay { .. } => {
            refused("isolation", "Rename that branch: worktrees are on branches below this name.")
        }
        WorktreeError::MissingObjects { .. } => refused(
            "isolation",
            "Fetch them, for example with 'git checkout' of that commit, or run the task without {input:isolation}.",
        ),
        WorktreeError::BranchExists { .. } => refused("branch", "Choose another name."),
        WorktreeError::Exists { .. } => AppError::new(ErrorCode::IoError, message),
        WorktreeError::Write(error) => write_error(error, message),
        WorktreeError::Git(error) => write_error(WriteError::Git(error), message),
    }
}

pub(super) fn isolation_error(error: IsolationError, message: String) -> AppError {
    match error {
        IsolationError::Worktree(error) => worktree_error(error, message),
        IsolationError::Gone { task } => {
            AppError::new(ErrorCode::WrongState, message).context("task_id", task.as_str())
        }
        IsolationError::Busy { busy, .. } => {
            let wait = NextCall::new(&["local", "wait"]);
            AppError::new(ErrorCode::LockHeld, message)
                .context("task_id", busy.as_str())
                .suggest(Suggestion::with_call("Wait for it with {call}, or cancel it.", wait))
        }
        IsolationError::Claimed { task } => AppError::new(ErrorCode::LockHeld, message)
            .context("task_id", task.as_str())
            .suggest("Try again when that command has ended."),
        IsolationError::OnlyCopy { task, .. } => {
            let suggestion = format!(
                "Copy it from the worktree first, or lose it: let the user run 'mcp-delegator discard {task} \
                 --confirm-destructive --include-only-copies' in a terminal."
            );
            AppError::new(ErrorCode::ConfirmationRequired, message)
                .context("task_id", task.as_str())
                .suggest(suggestion)
        }
        IsolationError::DiffTooLarge { task, .. } => AppError::new(ErrorCode::WrongState, message)
            .context("task_id", task.as_str())
            .suggest("Use {input:branch}: a branch has no limit."),
        IsolationError::QuotaExceeded { oldest, .. } => {
            let names: Vec<&str> = oldest.iter().map(TaskId::as_str).collect();
            let suggestion = format!(
                "Apply or discard worktrees with changes, the oldest first ({}), or raise worktree_quota_bytes in your own \
                 configuration.",
                names.join(", ")
            );
            AppError::new(ErrorCode::PolicyBlocked, message)
                .context("worktrees", names.as_slice())
                .suggest(suggestion)
        }
    }
}
