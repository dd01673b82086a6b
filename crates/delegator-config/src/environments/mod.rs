//! The environments in which cloud tasks run: `environments.json`, next to the user's configuration file.
//!
//! The file is one object, keyed by environment id. Reading is `text ► JSON ► check ► Environments`; all problems
//! of the file are reported at once, each with its line and column. Unknown fields are preserved: an edit changes
//! one entry of the object that was read, keeps the order, and replaces the file as a whole.
//!
//! `check` defines the fields and checks entries, `file` is the only module that reads or writes.

mod check;
mod file;

use std::path::PathBuf;

use delegator_domain::environment::Environment;

use crate::problem::{ConfigError, ConfigWarning};

pub use check::{entry_problems, field_default, new_entry};
pub use file::{add, read, remove};

/// A valid environments file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environments {
    pub file: PathBuf,
    /// In the order of the file.
    pub all: Vec<Environment>,
    /// Warnings about unknown fields.
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

    /// The id that was probably meant.
    pub fn nearest(&self, wanted: &str) -> Option<&str> {
        delegator_domain::similar_names::nearest(
            wanted,
            self.all.iter().map(|environment| environment.id.as_str()),
        )
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

/// An example file.
pub fn sample() -> &'static str {
    include_str!("sample.json")
}

#[cfg(test)]
mod tests;
