//! Converts errors of applying a diff into [`AppError`]: error code, context for programs and a suggestion.

use delegator_engine::{ApplyError, Conflict, GitError, display_path};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::error::{AppError, ErrorCode};

/// A file that cannot be changed as the diff demands.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConflictContext {
    pub path: String,
    pub reason: String,
}

impl ConflictContext {
    pub fn of(conflict: &Conflict) -> ConflictContext {
        ConflictContext { path: display_path(&conflict.path), reason: conflict.reason.to_string() }
    }
}

pub(super) fn apply_error(error: ApplyError, message: String) -> AppError {
    match error {
        ApplyError::Conflicts { conflicts } => {
            let named: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
            let contexts: Vec<ConflictContext> = conflicts.iter().map(ConflictContext::of).collect();
            let message =
                format!("The diff does not fit here, so nothing was changed. {}.", named.join("; "));
            AppError::new(ErrorCode::WrongState, message).context("conflicts", json!(contexts)).suggest(
                "Commit or move aside the files in conflict, or check out the commit that the task worked on, and try \
                 again.",
            )
        }
        ApplyError::EmptyDiff => {
            AppError::new(ErrorCode::WrongState, "The task changed nothing, so there is nothing to apply.")
        }
        ApplyError::NoWorkTree { .. } => AppError::new(ErrorCode::InvalidValue, message)
            .context("field", "working_dir")
            .suggest("Give a directory in a clone of the task's repository as {input:working_dir}."),
        ApplyError::NotADiff | ApplyError::MalformedDiff { .. } => {
            AppError::new(ErrorCode::AgentProtocolError, message)
        }
        ApplyError::IndexLocked { .. } | ApplyError::Busy { .. } => {
            AppError::new(ErrorCode::LockHeld, message)
        }
        ApplyError::ConcurrentChange { .. } => AppError::new(ErrorCode::NotReady, message),
        ApplyError::Incomplete { point, .. } => {
            AppError::new(ErrorCode::IoError, message).context("undo_point", point)
        }
        ApplyError::Git(GitError::TimedOut { limit, .. }) => AppError::wall_timeout(message, limit),
        ApplyError::Git(_) => AppError::new(ErrorCode::IoError, message),
    }
}
