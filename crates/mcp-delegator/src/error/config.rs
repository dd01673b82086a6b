//! Converts errors of the configuration, of its edits and of the environments file into [`AppError`], with their places.

use delegator_config::environments::{EnvironmentsError, sample};
use delegator_config::user_edit::EditError;
use delegator_config::{ConfigError, ProblemSource, UnknownSetting};
use serde_json::{Map, Value};

use crate::error::suggestion::NextCall;
use crate::error::{AppError, ErrorCode, Problem, io_error, sentence, truncate_text};

impl From<ConfigError> for AppError {
    fn from(error: ConfigError) -> Self {
        let code = ErrorCode::ConfigInvalid;
        let stated = match error.problems.as_slice() {
            [] => AppError::new(code, "The configuration is not valid."),
            [only] => AppError::new(code, only.to_string()),
            [first, ..] => {
                let count = format!("{} problems in the configuration", error.problems.len());
                AppError::summarizing(code, count, first.to_string())
            }
        };
        let is_only = error.problems.len() == 1;
        let convert = |problem: &delegator_config::Problem| {
            let (converted, advice) = (config_problem(problem), config_advice(problem));
            // The message of a single problem contains its place and what was probably meant.
            if is_only { converted.permit(advice) } else { converted.suggest(Some(advice)) }
        };
        let problems = error.problems.iter().map(convert).collect();
        AppError { message: stated.message, summary: stated.summary, ..AppError::from_problems(problems) }
    }
}

fn config_problem(problem: &delegator_config::Problem) -> Problem {
    let source = match &problem.source {
        ProblemSource::UserConfig => "user_config",
        ProblemSource::Project => "project",
        ProblemSource::Environments => "environments",
        ProblemSource::Variable(name) | ProblemSource::Flag(name) => name,
    };
    let mut context = Map::from_iter([("source".to_owned(), Value::from(source))]);
    if let Some(file) = &problem.file {
        context.insert("file".into(), file.display().to_string().into());
    }
    context.extend(problem.line.map(|line| ("line".to_owned(), line.into())));
    context.extend(problem.column.map(|column| ("column".to_owned(), column.into())));
    let converted = Problem::new(ErrorCode::ConfigInvalid, problem.key.clone(), problem.problem.clone());
    Problem { context, value: problem.value.clone(), ..converted }
}

/// What to change, where, and to which value.
fn config_advice(problem: &delegator_config::Problem) -> String {
    let key = if problem.key.is_empty() { "it" } else { &problem.key };
    let place = match (&problem.source, &problem.file) {
        (ProblemSource::Variable(name) | ProblemSource::Flag(name), _) => name.clone(),
        (_, Some(file)) => format!("{key} in {}", file.display()),
        (_, None) => key.to_owned(),
    };
    match (&problem.suggestion, &problem.expected) {
        (Some(meant), _) => format!("Did you mean {meant}?"),
        (None, Some(expected)) => format!("Set {place} to {expected}."),
        (None, None) => format!("Change or remove {place}."),
    }
}

impl From<UnknownSetting> for AppError {
    fn from(error: UnknownSetting) -> Self {
        AppError::new(ErrorCode::NotFound, sentence(&error.to_string()))
            .context("key", truncate_text(&error.name))
            .suggest_name(
                error.nearest,
                "Run {call} to list all settings.",
                NextCall::new(&["config", "show"]),
            )
    }
}

impl From<EditError> for AppError {
    fn from(error: EditError) -> Self {
        let message = sentence(&error.to_string());
        match error {
            EditError::Unknown(unknown) => unknown.into(),
            EditError::Invalid(invalid) => invalid.into(),
            EditError::NoPlace { path, .. } => AppError::new(ErrorCode::ConfigInvalid, message)
                .context("path", path.display().to_string())
                .suggest_call(
                    "Nothing was changed. Edit the file with {call}.",
                    NextCall::new(&["config", "edit"]),
                ),
            EditError::Changed { path } => AppError::new(ErrorCode::LockHeld, message)
                .context("path", path.display().to_string())
                .suggest("Repeat the command."),
            EditError::Write { path, error } => io_error(&format!("Writing {}", path.display()), &error),
        }
    }
}

impl From<EnvironmentsError> for AppError {
    fn from(error: EnvironmentsError) -> Self {
        let message = sentence(&error.to_string());
        match error {
            EnvironmentsError::Missing { path } => AppError::new(ErrorCode::NotFound, message)
                .context("path", path.display().to_string())
                .context("sample", sample())
                .detail(format!("Sample file:\n{}", sample()))
                .suggest_call("Add an environment, for example with {call}.", sample_addition()),
            EnvironmentsError::Invalid(error) => error.into(),
            EnvironmentsError::Exists { id, path } => AppError::new(ErrorCode::AlreadyExists, message)
                .context("env_id", id)
                .context("path", path.display().to_string())
                .suggest_call(
                    "Choose another id, or first remove the existing environment with {call}.",
                    NextCall::new(&["env", "remove"]),
                ),
            EnvironmentsError::Unknown { id, path, nearest } => {
                unknown_environment(&id, nearest.as_deref()).context("path", path.display().to_string())
            }
            EnvironmentsError::Write { path, error } => {
                io_error(&format!("Writing {}", path.display()), &error)
            }
        }
    }
}

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
    let list = NextCall::new(&["cloud", "list-environments"]);
    AppError::new(ErrorCode::NotFound, format!("There is no environment '{}'.", truncate_text(id)))
        .context("env_id", truncate_text(id))
        .suggest_name(nearest, "Run {call} to list the environments.", list)
}
