//! Scripts: the behaviour of an agent as data.

mod behaviour;
mod codex_events;
mod signal;
mod step;

use std::path::Path;

use serde::Deserialize;

pub use behaviour::{
    BigLine, ChildProcess, ChildWork, Events, Flood, LineShape, ProcessTree, RawBytes, Record, Session,
    StdinRead, Stream, Trap,
};
pub use codex_events::{PlanSteps, Program, ThreadStarted, Usage};
pub use signal::SignalName;
pub use step::{Choice, Command, Repeat, Replacement, Step, WrittenFile};

/// The behaviour of an agent from its start to its end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The purpose of the script; for readers only.
    #[serde(default)]
    pub about: String,
    /// Output of `--version`; that of Codex 0.166.0 by default.
    pub version: Option<String>,
    /// Seed that makes every random choice reproducible.
    pub seed: Option<u64>,
    pub steps: Vec<Step>,
}

/// Why a script cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {path}: {cause}")]
    Unreadable { path: String, cause: std::io::Error },
    /// The text is not a valid script.
    #[error("{name} is not a script: {cause}")]
    Malformed {
        name: String,
        /// The problem and its position.
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
