//! Converts errors of the environments file into [`AppError`]: error code, context and suggestion.

use delegator_config::environments::{EnvironmentsError, sample};

use crate::error::suggestion::{NextCall, Suggestion};
use crate::error::{AppError, ErrorCode, io_error, sentence, truncate_text};

impl From<EnvironmentsError> for AppError {
    fn from(error: EnvironmentsError) -> Self {
        let message = sentence(&error.to_string());
        match error {
            EnvironmentsError::Missing { path } => AppError::new(ErrorCode::NotFound, message)
                .context("path", path.display().to_string())
                .context("sample", sample())
                .detail(format!("Sample file:\n{}", sample()))
                .suggest(Suggestion::with_call(
                    "Add an environment, for example with {call}.",
                    sample_addition(),
                )),
            EnvironmentsError::Invalid(error) => error.into(),
            EnvironmentsError::Exists { id, path } => AppError::new(ErrorCode::AlreadyExists, message)
                .context("env_id", id)
                .context("path", path.display().to_string())
                .suggest(Suggestion::with_call(
                    "Choose another id, or first remove the existing environment with {call}.",
                    NextCall::new(&["env", "remove"]),
                )),
            EnvironmentsError::Unknown { id, path, nearest } => {
                unknown_environment(&id, nearest.as_deref()).context("path", path.display().to_string())
            }
            EnvironmentsError::Write { path, error } => {
                io_error(&format!("Writing {}", path.display()), &error)
            }
        }
    }
}

/// A complete call that adds an environment.
fn sample_addition() -> NextCall {
    let inputs = [
        ("env_id", "env_myproject"),
        ("name", "My Project"),
        ("repo_url", "https://github.com/user/myproject"),
        ("stack", "node"),
    ];
    inputs.into_iter().fold(NextCall::new(&["env", "add"]), |call, (name, value)| call.with(name, value))
}

fn unknown_environment(id: &str, nearest: Option<&str>) -> AppError {
    let error =
        AppError::new(ErrorCode::NotFound, format!("There is no environment '{}'.", truncate_text(id)))
            .context("env_id", truncate_text(id));
    match nearest {
        Some(nearest) => error.suggest(format!("Did you mean {nearest}?")),
        None => {
            let list = NextCall::new(&["cloud", "list-environments"]);
            error.suggest(Suggestion::with_call("Run {call} to list the environments.", list))
        }
    }
}
