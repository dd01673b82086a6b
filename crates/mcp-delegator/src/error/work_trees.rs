//! Converts errors of the commands that change a work tree into [`AppError`]: apply, restore and worktrees.
//!
//! Overlaps stay typed until here; this is the only place that makes a sentence of them.

use delegator_domain::task::TaskId;
use delegator_domain::terminal::escape_line_breaks;
use delegator_engine::{
    ApplyError, Conflict, EndStateProblem, GitError, HunkRange, IsolationError, Overlap, OverlapPart,
    RestoreError, WorktreeError, WriteError, display_path,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::suggestion::NextCall;
use crate::error::{AppError, ErrorCode};

/// A file that cannot be changed as the diff demands.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConflictContext {
    pub path: String,
    pub reason: String,
    /// The hunks of the diff that do not apply; absent if the whole file is in conflict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub hunks: Vec<HunkRange>,
}

impl ConflictContext {
    pub fn of(conflict: &Conflict) -> ConflictContext {
        ConflictContext {
            path: display_path(&conflict.path),
            reason: conflict.explanation(),
            hunks: conflict.hunks.clone(),
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

const RESTORE_ALL: &str = "Commit or copy the later edits that you want to retain, then restore with {input:all}, first with \
                           {input:dry_run}: it reverts the whole work tree, including later edits. {input:undo} reverts \
                           that again.";

/// A change that would be reverted and was changed again.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OverlapContext {
    /// The file or directory; for `head` the work tree.
    pub path: String,
    /// What was changed again: the file in the work tree, its permissions, its index entry, or HEAD of the
    /// work tree.
    #[schemars(with = "String", extend("enum" = ["file", "permissions", "index", "head"]))]
    pub part: OverlapPart,
}

pub(super) fn overlap_error(overlaps: &[Overlap]) -> AppError {
    let text = |overlap: &Overlap| escape_line_breaks(&describe(overlap));
    let texts: Vec<String> = overlaps.iter().map(text).collect();
    let message = format!(
        "What would be restored was changed again since: {}. Nothing was restored.",
        texts.join(", ")
    );
    let context =
        |overlap: &Overlap| OverlapContext { path: overlap.path.display().to_string(), part: overlap.part };
    let contexts: Vec<OverlapContext> = overlaps.iter().map(context).collect();
    AppError::new(ErrorCode::WrongState, message).context("overlaps", json!(contexts)).suggest(RESTORE_ALL)
}

fn describe(overlap: &Overlap) -> String {
    let path = overlap.path.display();
    match overlap.part {
        OverlapPart::File => path.to_string(),
        OverlapPart::Permissions => format!("the permissions of {path}"),
        OverlapPart::Index => format!("the index entry of {path}"),
        OverlapPart::Head => format!("HEAD of {path}"),
    }
}

pub(super) fn restore_error(error: RestoreError, message: String) -> AppError {
    match error {
        RestoreError::NoEndState { .. } | RestoreError::UnfinishedRestore { .. } => {
            AppError::new(ErrorCode::WrongState, message).suggest(RESTORE_ALL)
        }
        RestoreError::UnreadableEndState { file, problem } => {
            let suggestion = match problem {
                EndStateProblem::Damaged => RESTORE_ALL.to_owned(),
                EndStateProblem::OtherVersion { .. } => {
                    format!("Restore with the version of mcp-delegator that ran the task. Or: {RESTORE_ALL}")
                }
            };
            AppError::new(ErrorCode::WrongState, message)
                .context("file", file.display().to_string())
                .suggest(suggestion)
        }
        RestoreError::PointMissing { .. } => AppError::new(ErrorCode::NotFound, message),
        RestoreError::DifferentRepository { .. }
        | RestoreError::PathBlocked { .. }
        | RestoreError::CheckedOutElsewhere { .. } => AppError::new(ErrorCode::WrongState, message),
        RestoreError::Write(error) => write_error(error, message),
        RestoreError::Git(error) => write_error(WriteError::Git(error), message),
    }
}

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
                .suggest_call("Wait for it with {call}, or cancel it.", wait)
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
        IsolationError::NotComparable { task, .. } => {
            AppError::new(ErrorCode::Unsupported, message).context("task_id", task.as_str()).suggest(
                "Attempts of a group begin with the same files, each in a worktree of its own, so they can be compared.",
            )
        }
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

#[cfg(test)]
mod tests {
    use delegator_engine::EngineError;

    use super::*;

    #[test]
    fn an_overlap_names_the_path_and_what_of_it_was_changed_again() {
        let parts = [OverlapPart::File, OverlapPart::Permissions, OverlapPart::Index, OverlapPart::Head];
        let overlaps = parts.map(|part| Overlap { path: "/p/a (index)".into(), part });
        let error = AppError::from(EngineError::RestoreOverlap { overlaps: overlaps.into() });
        let context = |part: &str| json!({"path": "/p/a (index)", "part": part});
        assert_eq!(
            error.context["overlaps"],
            json!([context("file"), context("permissions"), context("index"), context("head")])
        );
        assert_eq!(
            error.message,
            "What would be restored was changed again since: /p/a (index), the permissions of /p/a (index), \
             the index entry of /p/a (index), HEAD of /p/a (index). Nothing was restored."
        );
    }
}
