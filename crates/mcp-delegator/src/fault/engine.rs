//! What the engine reports, in the vocabulary of the door.

use std::path::{Path, PathBuf};

use delegator_domain::task::Mode;
use delegator_engine::{EngineError, RestoreError, UnfitDirectory, UnfitFile, VariableRight};
use delegator_registry::RegistryError;

use super::shortage::shortage;
use super::{AppError, ErrorCode, Problem, Retry};
use crate::commands::local::tasks::AGENT;

impl From<EngineError> for AppError {
    fn from(error: EngineError) -> Self {
        let message = sentence(&error.to_string());
        if let Some(error) = shortage(error.os_error(), &message) {
            return error;
        }
        match error {
            EngineError::Registry(error) => registry(error),
            EngineError::UnknownTask { given } => AppError::new(ErrorCode::TaskNotFound, message)
                .context("task_id", given)
                .suggest("'mcp-delegator local status' lists the tasks."),
            EngineError::NoTaskId { given } => AppError::new(ErrorCode::InvalidId, message)
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
                    .context("state", state.shown())
                    .context("task_id", task.as_str())
                    .suggest(format!("Wait for it first: mcp-delegator local wait {task}"));
                AppError { retry: Retry::Later(None), ..error }
            }
            EngineError::AlreadyEnded { task, state } => AppError::new(ErrorCode::WrongState, message)
                .context("state", state.shown())
                .context("task_id", task.as_str()),
            EngineError::ModeTooWide { asked, allowed } => {
                AppError::of_problems(vec![mode_too_wide(asked, allowed)])
            }
            EngineError::OwnDirectory { input, .. } => AppError::new(ErrorCode::PolicyBlocked, message)
                .suggest("Choose a directory that holds the project alone.")
                .context("field", input),
            EngineError::VariableNotAllowed { name, right } => {
                AppError::of_problems(vec![variable_not_allowed("env_allow_list", &name, right)])
            }
            EngineError::TooDeep { .. } => AppError::new(ErrorCode::PolicyBlocked, message)
                .suggest("Do it in this task, or raise max_depth in your own configuration."),
            EngineError::TooManyChildren { .. } => AppError::new(ErrorCode::PolicyBlocked, message)
                .suggest("Wait for one of them, or raise max_children in your own configuration."),
            EngineError::Unfit { input, path, problem } => {
                AppError::of_problems(vec![unfit_directory(input, &path, &problem)])
            }
            EngineError::UnfitFile { input, path, problem } => {
                AppError::of_problems(vec![unfit_file(input, &path, &problem)])
            }
            EngineError::NoRestorePoint { task, .. } => {
                AppError::new(ErrorCode::NotFound, message).context("task_id", task.as_str())
            }
            EngineError::NoStoredPoint { task, .. } => AppError::new(ErrorCode::NotFound, message)
                .context("task_id", task.as_str())
                .suggest("Name a directory of the repository the task worked in with --working-dir."),
            EngineError::RestoreIncomplete { restored, failed, untouched, source } => {
                let list = |trees: &[PathBuf]| -> Vec<String> {
                    trees.iter().map(|tree| tree.display().to_string()).collect()
                };
                restore(source, message)
                    .context("restored", list(&restored))
                    .context("failed", failed.display().to_string())
                    .context("untouched", list(&untouched))
                    .suggest("Run restore again, or go back with --undo.")
            }
            EngineError::WorkTreeBusy { busy, state, .. } => {
                let error = AppError::new(ErrorCode::WrongState, message)
                    .context("state", state.shown())
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
            EngineError::Restore(error) => restore(error, message),
            EngineError::NoSession { .. } => AppError::new(ErrorCode::InvalidValue, message)
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
            EngineError::Io { .. } | EngineError::Watching { .. } => {
                AppError::new(ErrorCode::IoError, message)
            }
        }
    }
}

/// A mode above what the user allows.
pub fn mode_too_wide(asked: Mode, allowed: Mode) -> Problem {
    let words = format!("is more than the configured max_mode, {}, allows", allowed.name());
    Problem::new(ErrorCode::PolicyBlocked, "mode", words)
        .value(asked.name().into())
        .suggest(Some("Ask for less, or let the user raise max_mode in their own configuration."))
}

/// A variable a caller asks for, and the agent is not given.
pub fn variable_not_allowed(field: &str, name: &str, right: VariableRight) -> Problem {
    let (words, suggestion) = match right {
        VariableRight::Never => (
            format!("names {name}, which is never passed to an agent"),
            format!("Leave {name} out: variables that make programs run code never pass."),
        ),
        VariableRight::Given | VariableRight::NotListed => (
            format!("names {name}, which the agent is not given"),
            format!(
                "Leave {name} out, or let the user add it to agents.{AGENT}.env in their own configuration."
            ),
        ),
    };
    let mut problem = Problem::new(ErrorCode::PolicyBlocked, field, words).value(name.into());
    problem.context.insert("variable".into(), name.into());
    problem.suggest(Some(suggestion))
}

/// A directory an agent may not work in, or cannot.
pub fn unfit_directory(field: &str, path: &Path, problem: &UnfitDirectory) -> Problem {
    let (code, suggestion) = match problem {
        UnfitDirectory::Missing => {
            (ErrorCode::InvalidValue, "Create it, or name one that exists.".to_owned())
        }
        UnfitDirectory::NotADirectory | UnfitDirectory::Unusable(_) => {
            (ErrorCode::InvalidValue, "Name a directory that can be used.".to_owned())
        }
        UnfitDirectory::OutsideRoots { roots } => {
            let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
            (ErrorCode::PolicyBlocked, format!("Name one in {}.", roots.join(" or ")))
        }
    };
    Problem::new(code, field, problem.to_string())
        .value(path.display().to_string().into())
        .suggest(Some(suggestion))
}

/// A file a caller may not have read, or that cannot be.
pub fn unfit_file(field: &str, path: &Path, problem: &UnfitFile) -> Problem {
    let (code, suggestion) = match problem {
        UnfitFile::Missing | UnfitFile::NotAFile | UnfitFile::Unreadable(_) => {
            (ErrorCode::InvalidValue, "Name a regular file that can be read.".to_owned())
        }
        UnfitFile::OutsideRoots { roots } => {
            let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
            (ErrorCode::PolicyBlocked, format!("Name one in {}.", roots.join(" or ")))
        }
        UnfitFile::OwnState => {
            (ErrorCode::PolicyBlocked, "Name a file elsewhere; a task is named by its id.".to_owned())
        }
    };
    Problem::new(code, field, problem.to_string())
        .value(path.display().to_string().into())
        .suggest(Some(suggestion))
}

fn restore(error: RestoreError, message: String) -> AppError {
    match error {
        RestoreError::Gone { .. } => AppError::new(ErrorCode::NotFound, message),
        RestoreError::Locked { .. } => AppError::new(ErrorCode::LockHeld, message),
        RestoreError::OtherRepository { .. }
        | RestoreError::InTheWay { .. }
        | RestoreError::Changed { .. }
        | RestoreError::CheckedOutElsewhere { .. } => AppError::new(ErrorCode::WrongState, message),
        RestoreError::Half { undo, .. } => AppError::new(ErrorCode::IoError, message)
            .context("undo_point", undo)
            .suggest("Run restore again, or go back with --undo."),
        RestoreError::Git(_) => AppError::new(ErrorCode::IoError, message),
    }
}

fn registry(error: RegistryError) -> AppError {
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
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    let stop = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}
