//! Converts configuration errors into [`AppError`]: all problems, with their places and what to change.

use delegator_config::{ConfigError, ProblemSource};
use serde_json::{Map, Value};

use crate::error::{AppError, ErrorCode, Problem};

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
