//! The environments cloud tasks can run in: `environments.json`, beside the user's configuration file.
//!
//! One object, keyed by environment id. Reading is `text ► JSON ► check ► Environments`; what is wrong with the file
//! is told all at once, each problem with its line and column. Whatever we do not know is somebody else's and stays:
//! an edit changes one entry of the very object that was read, in its order, and replaces the file as a whole.
//!
//! `places` finds where things stand in the text, `check` decides what they mean, `file` is the only module that reads
//! or writes; the first two are pure.

mod check;
mod file;
mod key_positions;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::problem::{ConfigError, ConfigWarning};

pub use check::{entry_problems, new_entry};
pub use file::{add, read, remove};

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Hosted Codex.
    CodexCloud,
    /// Our own workers.
    Fleet,
}

impl Provider {
    pub(crate) const NAMES: [&'static str; 2] = ["codex-cloud", "fleet"];

    pub fn name(self) -> &'static str {
        match self {
            Provider::CodexCloud => "codex-cloud",
            Provider::Fleet => "fleet",
        }
    }
}

/// What becomes of a task whose worker is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLost {
    Fail,
    Retry,
}

/// One environment, with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    pub id: String,
    pub name: String,
    pub repo_url: String,
    pub stack: String,
    pub description: Option<String>,
    pub provider: Provider,
    pub branch: Option<String>,
    /// A script that prepares a checkout.
    pub setup: Option<String>,
    pub mode: String,
    /// A worker must have all of them.
    pub labels: BTreeMap<String, String>,
    pub priority: i64,
    pub on_lost: OnLost,
    pub max_claims: u64,
    pub push: bool,
    pub created_at: Option<String>,
}

/// A file without a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environments {
    pub file: PathBuf,
    /// In the order of the file.
    pub all: Vec<Environment>,
    /// What we do not know in it.
    pub warnings: Vec<ConfigWarning>,
}

impl Environments {
    /// The one of this id, else the only one of this name.
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
    /// Where the file would be is not known, or it is not what it should be.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    #[error("there is an environment '{id}' in {} already", .path.display())]
    Exists { id: String, path: PathBuf },
    #[error("there is no environment '{id}' in {}", .path.display())]
    Unknown { id: String, path: PathBuf, nearest: Option<String> },
    #[error("{} cannot be written: {error}", .path.display())]
    Write { path: PathBuf, error: std::io::Error },
}

/// A file to begin with.
pub fn sample() -> &'static str {
    include_str!("sample.json")
}

#[cfg(test)]
mod tests;
