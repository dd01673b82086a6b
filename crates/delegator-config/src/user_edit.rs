//! Edits the user's configuration file: the only code that writes it.
//!
//! An edit is checked as a whole before it is written: a file that [`load`](crate::load) would refuse is
//! refused with the same problems, and the old one stays. Problems that the file already has do not prevent
//! the edit of another setting. The directory is locked from reading to writing, and a file that another
//! program has changed meanwhile is not replaced.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::files::{self, ReadError};
use crate::key_path::{KeyPath, UnknownSetting, names_in};
use crate::locations::{Sources, unknown_user_file, user_file};
use crate::problem::{ConfigError, Problem, ProblemSource};
use crate::{load_with, toml_text};

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error(transparent)]
    Unknown(#[from] UnknownSetting),
    /// The file would not be valid, or it cannot be read.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    #[error("'{name}' cannot be set in {} without rewriting it", .path.display())]
    NoPlace { name: String, path: PathBuf },
    #[error("{} was changed by another program meanwhile; nothing was written", .path.display())]
    Changed { path: PathBuf },
    #[error("could not write {}: {error}", .path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// A checked edit that is not written yet.
#[derive(Debug)]
pub struct UserEdit {
    pub path: PathBuf,
    /// `None` if there is no file.
    before: Option<String>,
    after: String,
    /// The configuration as it is after the edit.
    pub config: Config,
    /// Problems that the edit leaves as they were.
    pub remaining: Option<ConfigError>,
    /// Held until the edit is written or dropped. There is none without a directory.
    _lock: Option<File>,
}

/// Whether an edit may leave problems that the file already has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownProblems {
    Accepted,
    Refused,
}

/// The user's configuration file, whether or not it exists.
pub fn user_file_path(sources: &Sources) -> Result<PathBuf, ConfigError> {
    user_file(sources)?.map(|file| file.path).ok_or_else(unknown_user_file)
}

/// The text of the user's configuration file; empty without one.
pub fn user_file_text(sources: &Sources) -> Result<String, ConfigError> {
    Ok(read(&user_file_path(sources)?)?.unwrap_or_default())
}

pub fn set(sources: &Sources, name: &str, value: &str) -> Result<UserEdit, EditError> {
    let key = KeyPath::parse(name)?;
    let value = key.toml_of(value);
    let change = |text: &str| toml_text::set(text, &key.names, &value);
    edit(sources, name, change)
}

/// Removes a setting from the file. Also a name that is no setting can be removed, if the file has it.
pub fn unset(sources: &Sources, name: &str) -> Result<UserEdit, EditError> {
    let names = names_in(name).unwrap_or_default();
    let is_known = KeyPath::parse(name).map(drop);
    let text = user_file_text(sources)?;
    if toml_text::contains(&text, &names) == Some(false) {
        is_known?;
        return edit(sources, name, |text| Some(text.to_owned()));
    }
    edit(sources, name, |text| toml_text::unset(text, &names))
}

/// Replaces the text that was read as `before` by one that must be valid as a whole.
pub fn replace_user_text(sources: &Sources, before: &str, after: String) -> Result<UserEdit, EditError> {
    let path = user_file_path(sources)?;
    let lock = lock(&path).ok();
    let present = read(&path)?;
    if present.as_deref().unwrap_or_default() != before {
        return Err(EditError::Changed { path });
    }
    checked(sources, path, present, after, KnownProblems::Refused, lock)
}

fn edit(
    sources: &Sources,
    name: &str,
    change: impl Fn(&str) -> Option<String>,
) -> Result<UserEdit, EditError> {
    let path = user_file_path(sources)?;
    let lock = lock(&path).ok();
    let before = read(&path)?;
    let text = before.as_deref().unwrap_or_default();
    let Some(after) = change(text) else {
        // A file that is not valid TOML cannot be edited, which its own problems say best.
        let problems = load_with(sources, Some(text)).err().map(|invalid| invalid.error.problems);
        let is_syntax = |problem: &Problem| problem.key.is_empty() && problem.file.as_ref() == Some(&path);
        let syntax: Vec<_> = problems.into_iter().flatten().filter(is_syntax).collect();
        return Err(match syntax.as_slice() {
            [] => EditError::NoPlace { name: name.to_owned(), path },
            _ => ConfigError { problems: syntax }.into(),
        });
    };
    checked(sources, path, before, after, KnownProblems::Accepted, lock)
}

fn checked(
    sources: &Sources,
    path: PathBuf,
    before: Option<String>,
    after: String,
    known: KnownProblems,
    lock: Option<File>,
) -> Result<UserEdit, EditError> {
    let (config, remaining) = match load_with(sources, Some(&after)) {
        Ok(config) => (config, None),
        Err(invalid) => (invalid.valid_part, Some(invalid.error)),
    };
    let before_edit = || load_with(sources, Some(before.as_deref().unwrap_or_default())).err();
    let earlier = remaining.as_ref().and_then(|_| before_edit());
    let earlier = earlier.map(|invalid| invalid.error.problems).unwrap_or_default();
    let is_new = |problem: &&Problem| {
        let is_accepted = known == KnownProblems::Accepted || problem.file.as_ref() != Some(&path);
        !(is_accepted && earlier.iter().any(|earlier| is_same(earlier, problem)))
    };
    let problems = remaining.iter().flat_map(|error| &error.problems);
    let new: Vec<Problem> = problems.filter(is_new).cloned().collect();
    if !new.is_empty() {
        return Err(ConfigError { problems: new }.into());
    }
    Ok(UserEdit { path, before, after, config, remaining, _lock: lock })
}

/// Whether it is the same problem, wherever the edit has moved it.
fn is_same(one: &Problem, other: &Problem) -> bool {
    let without_place = |problem: &Problem| Problem { line: None, column: None, ..problem.clone() };
    without_place(one) == without_place(other)
}

impl UserEdit {
    pub fn is_change(&self) -> bool {
        self.before.as_deref().unwrap_or_default() != self.after
    }

    /// Replaces the file, which retains its permissions, or creates it.
    pub fn write(self) -> Result<(), EditError> {
        if !self.is_change() {
            return Ok(());
        }
        let path = self.path;
        let failed = |error: io::Error| EditError::Write { path: path.clone(), error };
        if self.before.is_none() {
            let directory = path.parent().unwrap_or(Path::new("/"));
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        }
        if read(&path)? != self.before {
            return Err(EditError::Changed { path });
        }
        let mode = path.metadata().map_or(0o600, |found| found.permissions().mode() & 0o777);
        files::replace_text(&path, &self.after, mode).map_err(failed)
    }
}

fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    match files::read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(ReadError::Missing) => Ok(None),
        Err(error) => {
            let problem = Problem::of_source(ProblemSource::UserConfig, Some(path), error.to_string());
            Err(ConfigError { problems: vec![problem] })
        }
    }
}

fn lock(path: &Path) -> io::Result<File> {
    files::lock(path.parent().unwrap_or(Path::new("/")))
}
