//! Scripts: what an agent does, as data.

mod behaviour;
mod codex_events;
mod signal;
mod step;

use std::path::Path;

use serde::Deserialize;

pub use behaviour::{
    BigLine, ChildProcess, ChildWork, Choice, Events, Flood, LineShape, ProcessTree, RawBytes, Record,
    Repeat, Session, StdinRead, Stream, Trap,
};
pub use codex_events::{Command, PlanSteps, Program, Replacement, ThreadStarted, Usage, WrittenFile};
pub use signal::SignalName;
pub use step::Step;

/// What an agent does from its start to its end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What it is for; for readers only.
    #[serde(default)]
    pub about: String,
    /// What `--version` answers; Codex 0.166.0's answer unless told.
    pub version: Option<String>,
    /// Makes every random choice the same in every run.
    pub seed: Option<u64>,
    /// One after the other.
    pub steps: Vec<Step>,
}

/// Why there is no script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It cannot be read.
    #[error("cannot read the script {path}: {cause}")]
    Unreadable {
        /// Where it was looked for.
        path: String,
        /// What the system says.
        cause: std::io::Error,
    },
    /// It is not a script.
    #[error("{name} is not a script: {cause}")]
    Malformed {
        /// Which.
        name: String,
        /// What is wrong, and where.
        cause: serde_json::Error,
    },
}

impl Script {
    /// A script from its text; `name` is for the error message.
    pub fn parse(name: &str, text: &[u8]) -> Result<Self, ScriptError> {
        serde_json::from_slice(text).map_err(|cause| ScriptError::Malformed { name: name.to_owned(), cause })
    }

    /// A script from a file.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let name = path.display().to_string();
        match std::fs::read(path) {
            Ok(text) => Self::parse(&name, &text),
            Err(cause) => Err(ScriptError::Unreadable { path: name, cause }),
        }
    }
}
