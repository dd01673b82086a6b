//! Failures as the door sees them.
//!
//! Rooms below return precise error types of their own. At the door they become an [`AppError`]: a code from the
//! error map, a sentence for people, facts for programs, and the hint. Exit code and vocabulary follow from the code.

pub mod code;
pub mod engine;
pub mod environments;
pub mod exit;
mod os_limits;

use std::time::Duration;

use delegator_config::ProblemSource;
use delegator_domain::similar_names;
use serde_json::{Map, Value};

pub use code::{ErrorCode, Facts, Phase, Retryable, SideEffects};
pub use exit::ExitCode;

/// What a caller gave is repeated to them only as far as it helps.
const MAX_ECHO_CHARS: usize = 200;

/// A text as it may stand in a message.
pub fn truncate_text(text: &str) -> String {
    match text.char_indices().nth(MAX_ECHO_CHARS) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… ({} characters)", &text[..at], text.chars().count()),
    }
}

/// The known name that was meant; all of them where none is near.
pub fn suggest_nearest<'a>(given: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match similar_names::nearest(given, known.clone()) {
        Some(name) => format!("Did you mean {name}?"),
        None => format!("There are {}.", known.collect::<Vec<_>>().join(", ")),
    }
}

/// One thing wrong with the input. A call reports all of them together.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub code: ErrorCode,
    /// The input as the caller knows it: a property name, or a flag that is not known.
    pub field: String,
    pub problem: String,
    pub value: Option<Value>,
    pub suggestion: Option<String>,
    /// Where it stands, and whatever else a program may want to know.
    pub context: Map<String, Value>,
}

impl Problem {
    pub fn new(code: ErrorCode, field: impl Into<String>, problem: impl Into<String>) -> Self {
        let (field, problem) = (field.into(), problem.into());
        Problem { code, field, problem, value: None, suggestion: None, context: Map::new() }
    }

    pub fn value(mut self, value: Value) -> Self {
        self.value = Some(match value {
            Value::String(text) => truncate_text(&text).into(),
            value @ (Value::Array(_) | Value::Object(_)) if value.to_string().len() > MAX_ECHO_CHARS => {
                truncate_text(&value.to_string()).into()
            }
            other => other,
        });
        self
    }

    pub fn suggest(mut self, suggestion: Option<impl Into<String>>) -> Self {
        self.suggestion = suggestion.map(Into::into);
        self
    }
}

/// When the identical call may be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// As the error map says for this code and command.
    AsDeclared,
    /// It can succeed later; the wait is known only sometimes.
    Later(Option<Duration>),
    Never,
}

/// The command to run instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub command: String,
    pub permanent: bool,
    pub reason: &'static str,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AppError {
    pub code: ErrorCode,
    pub message: String,
    /// A longer explanation or the words of whoever refused.
    pub detail: Option<String>,
    /// Facts a program may act on; `details` of 000 and 004, `meta.error_context` of 002.
    pub context: Map<String, Value>,
    pub problems: Vec<Problem>,
    pub phase: Phase,
    pub retry: Retry,
    /// The next step, phrased for whoever called.
    pub suggestion: Option<String>,
    /// A command line that mends it.
    pub fix_command: Option<String>,
    pub redirect: Option<Redirect>,
}

impl AppError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        AppError {
            code,
            message: message.into(),
            detail: None,
            context: Map::new(),
            problems: Vec::new(),
            phase: code.facts().phase,
            retry: Retry::AsDeclared,
            suggestion: None,
            fix_command: None,
            redirect: None,
        }
    }

    /// All problems of one call as one error. The code is theirs where they agree.
    pub fn from_problems(problems: Vec<Problem>) -> Self {
        let code = match problems.split_first() {
            Some((first, rest)) if rest.iter().all(|other| other.code == first.code) => first.code,
            _ => ErrorCode::ArgError,
        };
        let message = match problems.as_slice() {
            [] => "The input is not valid.".to_owned(),
            [only] => problem_sentence(only),
            [first, ..] => {
                format!("{} problems with the input. First: {}", problems.len(), problem_sentence(first))
            }
        };
        let suggestion = problems.first().and_then(|problem| problem.suggestion.clone());
        AppError { problems, suggestion, ..AppError::new(code, message) }
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    pub fn fix_command(mut self, command: impl Into<String>) -> Self {
        self.fix_command = Some(command.into());
        self
    }

    pub fn context(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.context.insert(key.to_owned(), value.into());
        self
    }

    pub fn redirect(mut self, redirect: Redirect) -> Self {
        self.redirect = Some(redirect);
        self
    }

    pub fn exit(&self) -> ExitCode {
        self.code.facts().exit
    }

    pub fn retry_after(&self) -> Option<Duration> {
        match self.retry {
            Retry::Later(wait) => wait,
            Retry::AsDeclared | Retry::Never => None,
        }
    }
}

fn problem_sentence(problem: &Problem) -> String {
    format!("{}: {}", problem.field, problem.problem)
}

/// An I/O error of our own, with what was being done.
pub fn io_error(doing: &str, error: &std::io::Error) -> AppError {
    let message = format!("{doing}: {error}");
    os_limits::os_limit_error(error.raw_os_error(), &message)
        .unwrap_or_else(|| AppError::new(ErrorCode::IoError, message))
}

impl From<delegator_config::ConfigError> for AppError {
    fn from(error: delegator_config::ConfigError) -> Self {
        config_error(error)
    }
}

fn config_error(error: delegator_config::ConfigError) -> AppError {
    let message = match error.problems.as_slice() {
        [] => "The configuration is not valid.".to_owned(),
        [only] => only.to_string(),
        [first, ..] => format!("{} problems in the configuration. First: {first}", error.problems.len()),
    };
    let problems: Vec<Problem> = error.problems.iter().map(config_problem).collect();
    AppError { message, ..AppError::from_problems(problems) }
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
    let suggestion = problem.suggestion.as_ref().map(|meant| format!("Did you mean {meant}?"));
    let converted = Problem::new(ErrorCode::ConfigInvalid, problem.key.clone(), problem.problem.clone());
    Problem { context, ..converted.suggest(suggestion) }
}
