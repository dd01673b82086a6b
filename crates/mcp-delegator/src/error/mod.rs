//! The error type of commands, and its conversion from the precise error types of lower crates.
//!
//! The exit code and the name in each envelope follow from the code; no other module chooses them.

mod config;
mod conversation;
pub mod engine;
pub mod error_code;
pub mod fleet;
pub mod suggestion;
pub mod work_trees;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use delegator_domain::similar_names;
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

pub use error_code::{ErrorCode, ExitCode, Phase, Retryable, SideEffects};
use suggestion::{NextCall, Suggestion};

/// Longest part of a caller's input that a message repeats.
const MAX_ECHO_CHARS: usize = 200;
/// Maximum characters of a text of an agent or a provider that are quoted.
const MAX_QUOTED_CHARS: usize = 2_000;

/// Long enough for another call to end and release its resources.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The text, shortened to `MAX_ECHO_CHARS` for use in a message.
pub fn truncate_text(text: &str) -> String {
    match text.char_indices().nth(MAX_ECHO_CHARS) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… ({} characters)", &text[..at], text.chars().count()),
    }
}

pub fn truncate_quote(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((at, _)) => format!("{} [truncated]", &text[..at]),
        None => text.to_owned(),
    }
}

/// Suggests the known name nearest to `given`, or lists all known names.
pub fn suggest_nearest<'a>(given: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match similar_names::nearest(given, known.clone()) {
        Some(name) => format!("Did you mean {name}?"),
        None => format!("Known: {}.", known.collect::<Vec<_>>().join(", ")),
    }
}

/// One problem with the input. A call reports all of its problems together.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub code: ErrorCode,
    /// Name of the input: a property name, or the unknown flag.
    pub field: String,
    pub problem: String,
    pub value: Option<Value>,
    pub suggestion: Option<String>,
    /// What is permitted, in one sentence, if the problem states it as well: a suggestion for programs only.
    pub permitted: Option<String>,
    /// The input that permits the value anyway, if it is set to true.
    pub permitted_by: Option<&'static str>,
    /// What a person agrees to who sets the input to true, if that is all the call lacks.
    pub consent: Option<&'static str>,
    /// Details for programs, such as file and line.
    pub context: Map<String, Value>,
}

impl Problem {
    pub fn new(code: ErrorCode, field: impl Into<String>, problem: impl Into<String>) -> Self {
        Problem {
            code,
            field: field.into(),
            problem: problem.into(),
            value: None,
            suggestion: None,
            permitted: None,
            permitted_by: None,
            consent: None,
            context: Map::new(),
        }
    }

    pub fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Problem::new(ErrorCode::InvalidValue, field, problem)
    }

    /// Two inputs exclude each other.
    pub fn excluded(field: impl Into<String>, other: &str) -> Self {
        Problem::invalid(field, format!("cannot be given together with {{input:{other}}}"))
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

    pub fn permit(mut self, permitted: impl Into<String>) -> Self {
        self.permitted = Some(permitted.into());
        self
    }

    /// Suggests the nearest of the permitted values, if one is similar; else all of them.
    pub fn choose_from<'a>(self, given: &str, choices: impl Iterator<Item = &'a str> + Clone) -> Self {
        let nearest = similar_names::nearest(given, choices.clone());
        let permitted = format!("Use one of {}.", choices.collect::<Vec<_>>().join(", "));
        self.suggest(nearest.map(|nearest| format!("Did you mean {nearest}?"))).permit(permitted)
    }

    /// The suggestion, and the input that permits the value anyway. A program always gets one.
    pub fn advice(&self) -> String {
        self.hint().or_else(|| self.permitted.clone()).unwrap_or_else(|| "Correct this input.".to_owned())
    }

    /// The advice for a person, without what the problem itself states.
    pub fn hint(&self) -> Option<String> {
        let permission = self.permitted_by.map(|input| format!("If it is intended, {{set:{input}}}."));
        let sentences: Vec<String> = self.suggestion.clone().into_iter().chain(permission).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

/// The command to run instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Redirect {
    pub command: String,
    pub permanent: bool,
    pub reason: &'static str,
}

/// The parts of a message that states several problems, for a reader who has the list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemSummary {
    /// How many there are, such as `2 problems with the input`.
    pub count: String,
    /// The first of them.
    pub first: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AppError {
    pub code: ErrorCode,
    pub message: String,
    /// Set if the message summarizes problems.
    pub summary: Option<Box<ProblemSummary>>,
    /// A longer explanation, or the message of the underlying error.
    pub detail: Option<String>,
    /// Context for programs: `details` of the tool and standard envelopes, `meta.error_context` of the CLI
    /// envelope.
    pub context: Map<String, Value>,
    pub problems: Vec<Problem>,
    pub phase: Phase,
    /// How long to wait before a retry, if that is known. Whether a retry can succeed follows from code and
    /// command.
    pub retry_after: Option<Duration>,
    /// What the caller can do next.
    pub suggestion: Option<Suggestion>,
    /// A command line that fixes the problem.
    pub fix_command: Option<String>,
    pub redirect: Option<Redirect>,
}

impl AppError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        AppError {
            code,
            message: message.into(),
            summary: None,
            detail: None,
            context: Map::new(),
            problems: Vec::new(),
            phase: code.facts().phase,
            retry_after: None,
            suggestion: None,
            fix_command: None,
            redirect: None,
        }
    }

    /// An error for several problems: how many there are, and the first of them.
    pub fn summarizing(code: ErrorCode, count: String, first: String) -> Self {
        let message = format!("{count}. First: {first}");
        AppError { summary: Some(Box::new(ProblemSummary { count, first })), ..AppError::new(code, message) }
    }

    /// A command of ours exceeded its own time limit.
    pub fn wall_timeout(message: impl Into<String>, limit: Duration) -> Self {
        AppError::new(ErrorCode::TimeoutWall, message)
            .context("timeout_type", "wall")
            .context("limit_seconds", limit.as_secs())
            .context("elapsed_seconds", limit.as_secs())
    }

    /// One error for all problems of a call. It has their code if they share one, else `ArgError`.
    pub fn from_problems(problems: Vec<Problem>) -> Self {
        let code = match problems.split_first() {
            Some((first, rest)) if rest.iter().all(|other| other.code == first.code) => first.code,
            _ => ErrorCode::ArgError,
        };
        let error = match problems.as_slice() {
            [] => AppError::new(code, "The input is not valid."),
            [only] => AppError::new(code, problem_sentence(only)),
            [first, ..] => {
                let count = format!("{} problems with the input", problems.len());
                AppError::summarizing(code, count, problem_sentence(first))
            }
        };
        let suggestion = problems.first().map(|problem| Suggestion::from(problem.advice()));
        AppError { problems, suggestion, ..error }
    }

    /// The suggestion for a person: without one that only repeats the message.
    pub fn hint(&self) -> Option<&Suggestion> {
        let repeats = |suggestion: &&Suggestion| match self.problems.as_slice() {
            [only] => only.hint().is_none() && only.advice() == suggestion.text,
            _ => false,
        };
        self.suggestion.as_ref().filter(|suggestion| !repeats(suggestion))
    }

    /// The error occurred while something was being ended or deleted.
    pub fn in_cleanup(self) -> Self {
        AppError { phase: Phase::Cleanup, ..self }
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub fn suggest(mut self, suggestion: impl Into<Suggestion>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    pub fn suggest_call(self, text: impl Into<String>, call: NextCall) -> Self {
        self.suggest(Suggestion::with_call(text, call))
    }

    pub fn fix_command(mut self, command: impl Into<String>) -> Self {
        self.fix_command = Some(command.into());
        self
    }

    pub fn with_context(mut self, facts: impl Serialize) -> Self {
        self.context.extend(json!(facts).as_object().cloned().unwrap_or_default());
        self
    }

    pub fn context(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.context.insert(key.to_owned(), value.into());
        self
    }

    pub fn optional_context(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.context(key, value),
            None => self,
        }
    }

    /// Suggests the known name nearest to the given one; if none is near, the call that lists all.
    pub fn suggest_name(self, nearest: Option<&str>, text: &str, list: NextCall) -> Self {
        match nearest {
            Some(nearest) => self.suggest(format!("Did you mean {nearest}?")),
            None => self.suggest_call(text, list),
        }
    }

    pub fn redirect(mut self, redirect: Redirect) -> Self {
        self.redirect = Some(redirect);
        self
    }

    pub fn exit(&self) -> ExitCode {
        self.code.facts().exit
    }
}

/// A call with one problem.
impl From<Problem> for AppError {
    fn from(problem: Problem) -> Self {
        AppError::from_problems(vec![problem])
    }
}

fn problem_sentence(problem: &Problem) -> String {
    format!("{}: {}", problem.field, problem.problem)
}

/// An I/O error of this process; `doing` names the operation.
pub fn io_error(doing: &str, error: &std::io::Error) -> AppError {
    let message = format!("{doing}: {error}");
    let limit_error = os_limit_error(error.raw_os_error(), &message);
    limit_error.unwrap_or_else(|| AppError::new(ErrorCode::IoError, message))
}

/// The error for this `errno`, if it is a shortage of a system resource (files, memory, processes): the
/// identical call may succeed once another process has released the resource. `E2BIG` is the exception: the
/// same call fails again, so its suggestion is to pass the text on standard input.
fn os_limit_error(os_error: Option<i32>, message: &str) -> Option<AppError> {
    let errno = Errno::from_raw_os_error(os_error?);
    if errno == Errno::TOOBIG {
        return Some(AppError::new(ErrorCode::InvalidValue, message).context("errno", "E2BIG").suggest(
            "The system takes at most 128 KiB in one argument, and 2 MiB in all of them and the environment. \
                          Give '-' instead of the text, and the text on standard input.",
        ));
    }
    let (name, hint) = match errno {
        Errno::MFILE => (
            "EMFILE",
            "This process has reached its limit of open files. Try again, or raise the limit (ulimit -n).",
        ),
        Errno::NFILE => {
            ("ENFILE", "The system has reached its limit of open files. Try again, or raise fs.file-max.")
        }
        Errno::NOMEM => ("ENOMEM", "The system is out of memory. Try again when other programs have ended."),
        Errno::AGAIN => (
            "EAGAIN",
            "The limit of processes and threads is reached. Try again when some have ended, or raise the limit (ulimit -u).",
        ),
        _ => return None,
    };
    let error = AppError::new(ErrorCode::ResourceShortage, message).context("errno", name).suggest(hint);
    Some(AppError { retry_after: Some(RETRY_AFTER), ..error })
}

/// Lower crates write errors without a capital letter and a period; messages to users have both.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let capital = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    let period = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{capital}{}{period}", letters.as_str())
}

/// Converts a panic in a handler into an internal error of that call.
pub fn catch_panics<T>(work: impl FnOnce() -> Result<T, AppError>) -> Result<T, AppError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let message = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(AppError::new(ErrorCode::Internal, "Internal error: this is a bug in mcp-delegator.")
            .detail(message)
            .suggest("Run the command again with MCP_DELEGATOR_LOG=debug and report the output."))
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use delegator_engine::EngineError;
    use delegator_registry::RegistryError;

    use super::*;

    fn os_error(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.raw_os_error())
    }

    #[test]
    fn every_resource_shortage_is_retryable() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN] {
            let registry_error =
                RegistryError::File { path: "/s/registry.db".into(), doing: "open", source: os_error(errno) };
            for error in [
                EngineError::Io { doing: "start a thread", source: os_error(errno) },
                EngineError::Registry(registry_error),
                EngineError::WatchFailed {
                    detail: "no more files".to_owned(),
                    os_error: Some(errno.raw_os_error()),
                },
            ] {
                let description = error.to_string();
                let error = AppError::from(error);
                assert_eq!(
                    (error.code, error.retry_after),
                    (ErrorCode::ResourceShortage, Some(RETRY_AFTER)),
                    "{description}: {error:?}"
                );
                assert!(error.suggestion.as_ref().unwrap().text.contains("Try again"), "{error:?}");
                assert!(error.context["errno"].as_str().unwrap().starts_with('E'), "{error:?}");
            }
        }
    }

    #[test]
    fn other_io_errors_use_the_declared_retry_rule() {
        let error = AppError::from(EngineError::Io { doing: "wait", source: os_error(Errno::IO) });
        assert_eq!((error.code, error.retry_after), (ErrorCode::IoError, None));
    }

    #[test]
    fn argument_too_long_suggests_standard_input() {
        let error =
            AppError::from(EngineError::Io { doing: "start a supervisor", source: os_error(Errno::TOOBIG) });
        assert_eq!((error.code, error.retry_after), (ErrorCode::InvalidValue, None));
        assert!(error.suggestion.unwrap().text.contains("standard input"));
    }
}
