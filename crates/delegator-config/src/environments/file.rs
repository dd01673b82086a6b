//! Reads the environments file as a whole and replaces it as a whole.
//!
//! An edit holds a lock on the directory from reading to replacing, so that concurrent edits do not undo each
//! other. The new text is written to a private temporary file, which then replaces the old one atomically: a
//! reader sees either the old or the new text. A symbolic link is followed, not replaced.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use delegator_domain::environment::Environment;
use delegator_domain::similar_names;
use delegator_domain::warning_code::WarningCode;
use serde_json::{Map, Value};

use super::check::{self, UnknownField};
use crate::files::{self, ReadError};
use crate::locations::{Sources, environments_file};
use crate::problem::{ConfigError, ConfigWarning, Position, Problem, ProblemSource, ValueProblem, quoted};

/// A valid environments file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environments {
    pub file: PathBuf,
    /// In the order of the file.
    pub all: Vec<Environment>,
    pub warnings: Vec<ConfigWarning>,
}

impl Environments {
    /// The environment with this id, else the only one with this name.
    pub fn find(&self, wanted: &str) -> Option<&Environment> {
        let by_id = self.all.iter().find(|environment| environment.id == wanted);
        by_id.or_else(|| {
            let mut named = self.all.iter().filter(|environment| environment.name == wanted);
            named.next().filter(|_| named.next().is_none())
        })
    }

    pub fn nearest(&self, wanted: &str) -> Option<&str> {
        similar_names::nearest(wanted, self.all.iter().map(|environment| environment.id.as_str()))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EnvironmentsError {
    #[error("there is no environments file at {}", .path.display())]
    Missing { path: PathBuf },
    /// The location of the file is unknown, or its content is invalid.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    #[error("environment '{id}' already exists in {}", .path.display())]
    Exists { id: String, path: PathBuf },
    #[error("there is no environment '{id}' in {}", .path.display())]
    Unknown { id: String, path: PathBuf, nearest: Option<String> },
    #[error("could not write {}: {error}", .path.display())]
    Write { path: PathBuf, error: std::io::Error },
}

pub fn read(sources: &Sources) -> Result<Environments, EnvironmentsError> {
    let path = environments_file(sources)?;
    let text = read_if_present(&path)?.ok_or_else(|| EnvironmentsError::Missing { path: path.clone() })?;
    Ok(parse(&path, &text)?.1)
}

/// Appends a new entry. Creates the file if it does not exist.
pub fn add(sources: &Sources, id: &str, entry: Map<String, Value>) -> Result<Environment, EnvironmentsError> {
    let path = environments_file(sources)?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let failed = |error: io::Error| EnvironmentsError::Write { path: path.clone(), error };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let _lock = files::lock(directory).map_err(failed)?;
    let mut object = match read_if_present(&path)? {
        Some(text) => parse(&path, &text)?.0,
        None => Map::new(),
    };
    if object.contains_key(id) {
        return Err(EnvironmentsError::Exists { id: id.to_owned(), path });
    }
    let mut checked = check::check_new(id, &entry);
    let Some(environment) = checked.environments.pop().filter(|_| checked.problems.is_empty()) else {
        let problems =
            checked.problems.into_iter().map(|problem| problem.into_problem(ProblemSource::Environments));
        return Err(ConfigError { problems: problems.collect() }.into());
    };
    object.insert(id.to_owned(), Value::Object(entry));
    replace(&path, &object).map_err(failed)?;
    Ok(environment)
}

/// Removes an entry; the others stay unchanged.
pub fn remove(sources: &Sources, id: &str) -> Result<Environment, EnvironmentsError> {
    let path = environments_file(sources)?;
    let missing = || EnvironmentsError::Missing { path: path.clone() };
    let failed = |error: io::Error| EnvironmentsError::Write { path: path.clone(), error };
    let directory = path.parent().filter(|directory| directory.is_dir()).ok_or_else(missing)?;
    let _lock = files::lock(directory).map_err(failed)?;
    let (mut object, environments) = parse(&path, &read_if_present(&path)?.ok_or_else(missing)?)?;
    let Some(environment) = environments.all.iter().find(|environment| environment.id == id) else {
        let nearest = environments.nearest(id).map(str::to_owned);
        return Err(EnvironmentsError::Unknown { id: id.to_owned(), path, nearest });
    };
    object.shift_remove(id);
    replace(&path, &object).map_err(failed)?;
    Ok(environment.clone())
}

fn read_if_present(path: &Path) -> Result<Option<String>, ConfigError> {
    match files::read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(ReadError::Missing) => Ok(None),
        Err(error) => {
            let problem = Problem::of_source(ProblemSource::Environments, Some(path), error.to_string());
            Err(ConfigError { problems: vec![problem] })
        }
    }
}

/// The JSON object as written, and the environments it defines.
fn parse(path: &Path, text: &str) -> Result<(Map<String, Value>, Environments), ConfigError> {
    let to_problem = |problem: ValueProblem| problem.into_problem_in(ProblemSource::Environments, path, text);
    let checked = check::check(text).map_err(|error| {
        let problem = format!("not valid JSON: {}", without_position(&error));
        let problem = Problem::of_source(ProblemSource::Environments, Some(path), problem);
        let (line, column) = (Some(error.line().max(1)), Some(error.column().max(1)));
        ConfigError { problems: vec![Problem { line, column, ..problem }] }
    })?;
    let problems: Vec<Problem> = checked.problems.into_iter().map(to_problem).collect();
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    let to_warning = |UnknownField { id, name, at, nearest }: UnknownField| {
        let Position { line, column } = Position::of(text, at.unwrap_or_default());
        let hint = nearest.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        let (file, name) = (path.display(), quoted(&name));
        ConfigWarning {
            code: WarningCode::UnknownEnvironmentField,
            message: format!("{file}:{line}:{column}: unknown field {name} of {id}{hint}"),
        }
    };
    let warnings = checked.unknown_fields.into_iter().map(to_warning).collect();
    let object = serde_json::from_str(text).unwrap_or_default();
    Ok((object, Environments { file: path.to_owned(), all: checked.environments, warnings }))
}

/// The message of the JSON parser without the position, which is reported separately.
fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or_default().to_owned()
}

fn replace(path: &Path, object: &Map<String, Value>) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(object)?;
    text.push('\n');
    files::replace_text(path, &text, 0o600)
}
