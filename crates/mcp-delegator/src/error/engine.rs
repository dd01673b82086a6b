//! What the engine reports, in the vocabulary of the door.

use std::path::{Path, PathBuf};

use delegator_domain::task::Mode;
use delegator_engine::{DirectoryProblem, EngineError, FileProblem, RestoreError, VariableAccess};
use delegator_registry::RegistryError;

use super::os_limits::os_limit_error;
use super::{AppError, ErrorCode, Problem, Retry};
use crate::commands::local::tasks::AGENT;

impl From<EngineError> for AppError {
    fn from(error: EngineError) -> Self {
        let message = sentence(&error.to_string());
        if let Some(error) = os_limit_error(error.os_error(), &message) {
            return error;
        }
        match error {
            EngineError::Registry(error) => registry_error(error),
            EngineError::UnknownTask { given } => AppError::new(ErrorCode::TaskNotFound, message)
                .context("task_id", given)
                .suggest("'mcp-delegator local status' lists the tasks."),
            EngineError::InvalidTaskId { given } => AppError::new(ErrorCode::InvalidId, message)
                .context("task_id", given)
                .suggest("An id is T-local- and 32 digits 0-9a-f; at least the first 8 of them will do."),
            EngineError::AmbiguousTask { candidates, .. } => {
                let candidates: Vec<String> = candidates.iter().map(ToString::to_string).collect();
                AppError::new(ErrorCode::InvalidId, message)
                    .context("candidates", candidates)
                    .suggest("Give more of the id.")
            }
            EngineError::UnknownThread { given } => {
                AppError::new(ErrorCode::ThreadNotFound, message).context("thread_id", given)
            }
            EngineError::NotEnded { task, state } => {
                let error = AppError::new(ErrorCode::WrongState, message)
                    .context("state", state.public_name())
                    .context("task_id", task.as_str())
                    .suggest(format!("Wait for it first: mcp-delegator local wait {task}"));
                AppError { retry: Retry::Later(None), ..error }
            }
            EngineError::AlreadyEnded { task, state } => AppError::new(ErrorCode::WrongState, message)
                .context("state", state.public_name())
                .context("task_id", task.as_str()),
            EngineError::ModeTooWide { requested, allowed } => {
                AppError::from_problems(vec![mode_too_wide(requested, allowed)])
            }
            EngineError::ReservedDirectory { input, .. } => AppError::new(ErrorCode::PolicyBlocked, message)
                .suggest("Choose a directory that holds the project alone.")
                .context("field", input),
            EngineError::VariableNotAllowed { name, right } => {
                AppError::from_problems(vec![variable_not_allowed("env_allow_list", &name, right)])
            }
            EngineError::NestingTooDeep { .. } => AppError::new(ErrorCode::PolicyBlocked, message)
                .suggest("Do it in this task, or raise max_depth in your own configuration."),
            EngineError::TooManyChildren { .. } => AppError::new(ErrorCode::PolicyBlocked, message)
                .suggest("Wait for one of them, or raise max_children in your own configuration."),
            EngineError::UnusableDirectory { input, path, problem } => {
                AppError::from_problems(vec![directory_problem(input, &path, &problem)])
            }
            EngineError::UnusableFile { input, path, problem } => {
                AppError::from_problems(vec![file_problem(input, &path, &problem)])
            }
            EngineError::NoRestorePoint { task, .. } => {
                AppError::new(ErrorCode::NotFound, message).context("task_id", task.as_str())
            }
            EngineError::RestorePointNotFound { task, .. } => AppError::new(ErrorCode::NotFound, message)
                .context("task_id", task.as_str())
                .suggest("Name a directory of the repository the task worked in with --working-dir."),
            EngineError::RestoreIncomplete { restored, failed, untouched, source } => {
                let list = |trees: &[PathBuf]| -> Vec<String> {
                    trees.iter().map(|tree| tree.display().to_string()).collect()
                };
                restore_error(source, message)
                    .context("restored", list(&restored))
                    .context("failed", failed.display().to_string())
                    .context("untouched", list(&untouched))
                    .suggest("Run restore again, or go back with --undo.")
            }
            EngineError::WorkTreeBusy { busy, state, .. } => {
                let error = AppError::new(ErrorCode::WrongState, message)
                    .context("state", state.public_name())
                    .context("busy_task_id", busy.as_str())
                    .suggest(format!("Wait for it, or end it: mcp-delegator local cancel {busy}"));
                AppError { retry: Retry::Later(None), ..error }
            }
            EngineError::ClockJumped { by_ms } => {
                let error = AppError::new(ErrorCode::WrongState, message)
                    .context("jumped_by_hours", by_ms / (60 * 60 * 1000))
                    .suggest(
                        "Check the date. If it is right, repeat the call with trust_clock (--trust-clock).",
                    );
                AppError { retry: Retry::Later(None), ..error }
            }
            EngineError::NoGit(_) => AppError::new(ErrorCode::DependencyMissing, message),
            EngineError::Restore(error) => restore_error(error, message),
            EngineError::NotImportable { .. } => AppError::new(ErrorCode::InvalidValue, message)
                .suggest("Session files lie under sessions/ in Codex's home."),
            EngineError::Agent(_) => AppError::new(ErrorCode::DependencyMissing, message)
                .suggest("Install it, or name it with codex_bin or MCP_DELEGATOR_CODEX_BIN."),
            EngineError::NoSandbox { .. } => AppError::new(ErrorCode::Unsupported, message)
                .context("field", "verify")
                .suggest("Set verify_unsandboxed in your own configuration to let it run without one."),
            EngineError::Plan(_) => AppError::new(ErrorCode::DependencyVersion, message),
            EngineError::Launch { .. } | EngineError::Randomness { .. } => {
                AppError::new(ErrorCode::Internal, message)
            }
            EngineError::Io { .. } | EngineError::WatchFailed { .. } => {
                AppError::new(ErrorCode::IoError, message)
            }
        }
    }
}

/// A mode above what the user allows.
pub fn mode_too_wide(requested: Mode, allowed: Mode) -> Problem {
    let message = format!("is more than the configured max_mode, {}, allows", allowed.name());
    Problem::new(ErrorCode::PolicyBlocked, "mode", message)
        .value(requested.name().into())
        .suggest(Some("Ask for less, or let the user raise max_mode in their own configuration."))
}

/// A variable a caller asks for, and the agent is not given.
pub fn variable_not_allowed(field: &str, name: &str, permission: VariableAccess) -> Problem {
    let (message, suggestion) = match permission {
        VariableAccess::Never => (
            format!("names {name}, which is never passed to an agent"),
            format!("Leave {name} out: variables that make programs run code never pass."),
        ),
        VariableAccess::Passed | VariableAccess::NotListed => (
            format!("names {name}, which the agent is not given"),
            format!(
                "Leave {name} out, or let the user add it to agents.{AGENT}.env in their own configuration."
            ),
        ),
    };
    let mut problem = Problem::new(ErrorCode::PolicyBlocked, field, message).value(name.into());
    problem.context.insert("variable".into(), name.into());
    problem.suggest(Some(suggestion))
}

/// A directory an agent may not work in, or cannot.
pub fn directory_problem(field: &str, path: &Path, problem: &DirectoryProblem) -> Problem {
    let (code, suggestion) = match problem {
        DirectoryProblem::Missing => {
            (ErrorCode::InvalidValue, "Create it, or name one that exists.".to_owned())
        }
        DirectoryProblem::NotADirectory | DirectoryProblem::Unusable(_) => {
            (ErrorCode::InvalidValue, "Name a directory that can be used.".to_owned())
        }
        DirectoryProblem::OutsideRoots { roots } => {
            let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
            (ErrorCode::PolicyBlocked, format!("Name one in {}.", roots.join(" or ")))
        }
    };
    Problem::new(code, field, problem.to_string())
        .value(path.display().to_string().into())
        .suggest(Some(suggestion))
}

/// A file a caller may not have read, or that cannot be.
pub fn file_problem(field: &str, path: &Path, problem: &FileProblem) -> Problem {
    let (code, suggestion) = match problem {
        FileProblem::Missing | FileProblem::NotAFile | FileProblem::Unreadable(_) => {
            (ErrorCode::InvalidValue, "Name a regular file that can be read.".to_owned())
        }
        FileProblem::OutsideRoots { roots } => {
            let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
            (ErrorCode::PolicyBlocked, format!("Name one in {}.", roots.join(" or ")))
        }
        FileProblem::OwnState => {
            (ErrorCode::PolicyBlocked, "Name a file elsewhere; a task is named by its id.".to_owned())
        }
    };
    Problem::new(code, field, problem.to_string())
        .value(path.display().to_string().into())
        .suggest(Some(suggestion))
}

fn restore_error(error: RestoreError, message: String) -> AppError {
    match error {
        RestoreError::PointMissing { .. } => AppError::new(ErrorCode::NotFound, message),
        RestoreError::IndexLocked { .. } => AppError::new(ErrorCode::LockHeld, message),
        RestoreError::DifferentRepository { .. }
        | RestoreError::PathBlocked { .. }
        | RestoreError::ConcurrentChange { .. }
        | RestoreError::CheckedOutElsewhere { .. } => AppError::new(ErrorCode::WrongState, message),
        RestoreError::Incomplete { undo, .. } => AppError::new(ErrorCode::IoError, message)
            .context("undo_point", undo)
            .suggest("Run restore again, or go back with --undo."),
        RestoreError::Git(_) => AppError::new(ErrorCode::IoError, message),
    }
}

fn registry_error(error: RegistryError) -> AppError {
    let message = sentence(&error.to_string());
    match error {
        RegistryError::IdempotencyConflict { first, .. } => {
            AppError::new(ErrorCode::IdempotencyMismatch, message).context("task_id", first.as_str())
        }
        RegistryError::Busy { .. } => AppError::new(ErrorCode::LockHeld, message),
        RegistryError::Damaged { .. } => AppError::new(ErrorCode::ConfigInvalid, message).suggest(
            "'mcp-delegator doctor --set-aside-damaged' keeps it under another name and starts anew.",
        ),
        RegistryError::NeedsNewerWriter { .. } | RegistryError::StateDir(_) => {
            AppError::new(ErrorCode::ConfigInvalid, message)
        }
        _ => AppError::new(ErrorCode::IoError, message),
    }
}

/// Errors below are written without a capital and a stop; what people read has both.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let capital = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    let period = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{capital}{}{period}", letters.as_str())
}
