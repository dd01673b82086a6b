//! Where a value was set, and the problems of a configuration: every one of every source, with its position.
//!
//! A message repeats a value only if the key has a closed set of values or is a number. Free text is never
//! repeated, because it may be a secret in the wrong place.

use std::fmt;
use std::path::{Path, PathBuf};

use delegator_domain::named_enum;
use delegator_domain::warning_code::WarningCode;
use serde_json::Value;

use crate::keys::ValueKind;

/// The configuration cannot be used. There is at least one problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", one_per_line(.problems))]
pub struct ConfigError {
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// The problems of a project file as warnings, for a call that does not need the file.
    pub fn into_warnings(self) -> Vec<ConfigWarning> {
        let to_warning = |problem: Problem| ConfigWarning {
            code: WarningCode::BrokenProjectFile,
            message: format!(
                "{problem}. The file is ignored for this call; no task starts in its work tree until the file is fixed."
            ),
        };
        self.problems.into_iter().map(to_warning).collect()
    }

    /// The problems as warnings, for a call that uses only the valid part of the configuration.
    pub fn ignored_values(&self) -> impl Iterator<Item = ConfigWarning> {
        self.problems.iter().map(|problem| ConfigWarning {
            code: WarningCode::IgnoredValue,
            message: format!("{problem}. This is ignored for this call; the default applies."),
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    pub source: ProblemSource,
    /// The invalid file, or the explicitly named file that cannot be used.
    pub file: Option<PathBuf>,
    /// Counted from 1.
    pub line: Option<usize>,
    /// Counted from 1, in characters.
    pub column: Option<usize>,
    /// The dotted key; empty if the problem concerns a source as a whole.
    pub key: String,
    pub problem: String,
    /// The invalid value, if a message may repeat it.
    pub value: Option<Value>,
    pub expected: Option<String>,
    /// The key or value that was probably meant.
    pub suggestion: Option<String>,
}

/// Which input a problem is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProblemSource {
    #[default]
    UserConfig,
    Project,
    /// The list of environments.
    Environments,
    Variable(String),
    Flag(String),
}

/// The source of a problem in a file.
impl From<Source> for ProblemSource {
    fn from(source: Source) -> Self {
        if source == Source::Project { ProblemSource::Project } else { ProblemSource::UserConfig }
    }
}

/// The source of a problem with a value that was set there.
impl From<&Origin> for ProblemSource {
    fn from(origin: &Origin) -> Self {
        match origin {
            Origin::Default => ProblemSource::UserConfig,
            Origin::File { source, .. } => (*source).into(),
            Origin::Variable(name) => ProblemSource::Variable(name.clone()),
            Origin::Flag(name) => ProblemSource::Flag(name.clone()),
        }
    }
}

/// A problem that does not prevent the use of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigWarning {
    pub code: WarningCode,
    pub message: String,
}

impl Problem {
    /// A problem of a whole source; `file` is set if the source is a file.
    pub(crate) fn of_source(
        source: ProblemSource,
        file: Option<&Path>,
        problem: impl Into<String>,
    ) -> Problem {
        Problem { source, file: file.map(Path::to_owned), problem: problem.into(), ..Problem::default() }
    }
}

/// A problem of a value, before the source of the value is known.
#[derive(Debug, Default)]
pub(crate) struct ValueProblem {
    pub(crate) key: String,
    /// Byte offset in the text of the file, if the value is from one.
    pub(crate) at: Option<usize>,
    pub(crate) problem: String,
    pub(crate) value: Option<Value>,
    pub(crate) expected: Option<String>,
    pub(crate) suggestion: Option<String>,
}

impl ValueProblem {
    /// `key` may be untrusted input; it is escaped.
    pub(crate) fn new(key: &str, at: Option<usize>, problem: impl Into<String>) -> ValueProblem {
        ValueProblem { key: escaped(key), at, problem: problem.into(), ..ValueProblem::default() }
    }

    /// A key that does not exist. Its name is the invalid value, as for an unknown flag.
    pub(crate) fn of_unknown_key(key: &str, at: Option<usize>, suggestion: Option<String>) -> ValueProblem {
        let value = Some(escaped(key).into());
        ValueProblem { value, suggestion, ..ValueProblem::new(key, at, "there is no such key") }
    }

    /// A value that a key of this kind does not accept.
    pub(crate) fn of_value(
        key: &str,
        at: Option<usize>,
        problem: String,
        kind: &ValueKind,
        value: Option<Value>,
    ) -> ValueProblem {
        // Free text may be a secret in the wrong place.
        let value = value.filter(|value| kind.is_closed() || !value.is_string());
        ValueProblem { value, expected: Some(kind.to_string()), ..ValueProblem::new(key, at, problem) }
    }

    /// Follows the listed problems of a file if there are more.
    pub(crate) fn more() -> ValueProblem {
        ValueProblem::new("", None, "there are more problems in this file; only the first ones are listed")
    }

    /// The problem of a value that is in a file with this text.
    pub(crate) fn into_problem_in(self, source: ProblemSource, path: &Path, text: &str) -> Problem {
        let position = self.at.map(|at| Position::of(text, at));
        let file = Some(path.to_owned());
        let (line, column) = position.map(|position| (position.line, position.column)).unzip();
        Problem { file, line, column, ..self.into_problem(source) }
    }

    pub(crate) fn into_problem(self, source: ProblemSource) -> Problem {
        let ValueProblem { key, problem, value, expected, suggestion, .. } = self;
        Problem { key, value, expected, suggestion, ..Problem::of_source(source, None, problem) }
    }
}

/// Untrusted text for a message: escaped, truncated and in backticks.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", escaped(text))
}

/// Escapes and truncates untrusted text, so that it cannot control the terminal or hide the message.
pub(crate) fn escaped(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    let head: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    let ellipsis = if text.chars().nth(MAX_CHARS).is_some() { "…" } else { "" };
    format!("{head}{ellipsis}")
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            ProblemSource::Variable(name) | ProblemSource::Flag(name) => write!(f, "{name}: ")?,
            ProblemSource::UserConfig | ProblemSource::Project | ProblemSource::Environments => {}
        }
        if let Some(file) = &self.file {
            write!(f, "{}", file.display())?;
            if let (Some(line), Some(column)) = (self.line, self.column) {
                write!(f, ":{line}:{column}")?;
            }
            f.write_str(": ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, " (did you mean `{suggestion}`?)"),
            None => Ok(()),
        }
    }
}

fn one_per_line(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

named_enum! {
    /// The five kinds of source, in ascending precedence.
    pub enum Source {
        Default = "default",
        UserConfig = "user_config",
        Project = "project",
        Environment = "environment",
        Flag = "flag",
    }
}

/// Line and column in a text, both counted from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// Line and column of a byte offset. An offset inside a character counts as that character.
    pub(crate) fn of(text: &str, at: usize) -> Position {
        let before = &text[..text.floor_char_boundary(at)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Position {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// The exact position where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// The user's file or a project's, which `source` says.
    File {
        source: Source,
        path: PathBuf,
        position: Position,
    },
    Variable(String),
    Flag(String),
}

impl Origin {
    pub fn source(&self) -> Source {
        match self {
            Origin::Default => Source::Default,
            Origin::File { source, .. } => *source,
            Origin::Variable(_) => Source::Environment,
            Origin::Flag(_) => Source::Flag,
        }
    }
}

/// `path:line`, the variable, the flag, or `default`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, position, .. } => write!(f, "{}:{}", path.display(), position.line),
            Origin::Variable(name) | Origin::Flag(name) => f.write_str(name),
        }
    }
}
