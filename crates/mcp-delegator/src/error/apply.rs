//! Converts errors of applying a diff into [`AppError`]: error code, context for programs and a suggestion.

use delegator_engine::{ApplyError, Conflict, GitError, HunkRange, WriteError, display_path};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{AppError, ErrorCode};

/// A file that cannot be changed as the diff demands.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConflictContext {
    pub path: String,
    pub reason: String,
    /// The hunks of the diff that do not apply; absent if the whole file is in conflict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub hunks: Vec<HunkContext>,
}

/// The lines of a hunk before and after the change, as the diff numbers them.
#[derive(Debug, Clone, Serialize)]
pub struct HunkContext {
    pub old_start: u64,
    pub old_lines: u64,
    pub new_start: u64,
    pub new_lines: u64,
}

impl HunkContext {
    fn of(hunk: &HunkRange) -> HunkContext {
        let HunkRange { old_start, old_lines, new_start, new_lines } = *hunk;
        HunkContext { old_start, old_lines, new_start, new_lines }
    }
}

impl ConflictContext {
    pub fn of(conflict: &Conflict) -> ConflictContext {
        ConflictContext {
            path: display_path(&conflict.path),
            reason: conflict.explanation(),
            hunks: conflict.hunks.iter().map(HunkContext::of).collect(),
        }
    }
}

/// The error of a diff that does not fit, whether it was to be applied or only checked.
pub fn conflict_error(conflicts: &[ConflictContext]) -> AppError {
    let named: Vec<String> =
        conflicts.iter().map(|conflict| format!("{}: {}", conflict.path, conflict.reason)).collect();
    let message = format!("The diff does not fit here, so nothing was changed. {}.", named.join("; "));
    AppError::new(ErrorCode::WrongState, message).context("conflicts", json!(conflicts)).suggest(
        "Commit or move aside the files in conflict, or check out the commit that the task worked on, and try again.",
    )
}

pub(super) fn apply_error(error: ApplyError, message: String) -> AppError {
    match error {
        ApplyError::Conflicts { conflicts } => {
            let contexts: Vec<ConflictContext> = conflicts.iter().map(ConflictContext::of).collect();
            conflict_error(&contexts)
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
        ApplyError::CannotCommit { .. } => AppError::new(ErrorCode::WrongState, message)
            .suggest("Apply the changes without {input:commit}, and commit them yourself."),
        ApplyError::Write(error) => write_error(error, message),
        ApplyError::Git(error) => write_error(WriteError::Git(error), message),
    }
}

/// For every command that changes a work tree.
pub(super) fn write_error(error: WriteError, message: String) -> AppError {
    match error {
        WriteError::IndexLocked { .. } | WriteError::Busy { .. } => {
            AppError::new(ErrorCode::LockHeld, message)
        }
        WriteError::ConcurrentChange { .. } => AppError::new(ErrorCode::NotReady, message),
        WriteError::TakenBackInPart { point, .. } => {
            AppError::new(ErrorCode::NotReady, message).context("undo_point", point)
        }
        WriteError::Incomplete { point, .. } => {
            AppError::new(ErrorCode::IoError, message).context("undo_point", point)
        }
        WriteError::Git(GitError::TimedOut { limit, .. }) => AppError::wall_timeout(message, limit),
        WriteError::ForeignJournal { .. } => AppError::new(ErrorCode::WrongState, message),
        WriteError::Git(_) => AppError::new(ErrorCode::IoError, message),
    }
}
