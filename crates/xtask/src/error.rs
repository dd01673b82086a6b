//! Why a tier could not be measured. A missed bound is not an error but a figure.

use std::io;

use delegator_engine::EngineError;
use delegator_registry::RegistryError;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("interrupted")]
    Interrupted,
    #[error("timed out: {doing}")]
    OutOfTime { doing: String },
    #[error("could not {doing}: {source}")]
    Io { doing: String, source: io::Error },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("a server exited unexpectedly")]
    ServerGone,
    #[error("a server refused the request: {response}")]
    Refused { response: String },
    #[error("{program} failed: {output}")]
    Program { program: String, output: String },
    #[error("unknown tier {given}; known tiers: {}", known.join(", "))]
    UnknownTier { given: String, known: Vec<&'static str> },
    #[error("unknown participant {given}; known participants: {}", known.join(", "))]
    UnknownParticipant { given: String, known: Vec<String> },
    #[error("the race runs offline")]
    Offline,
    #[error(
        "no peer could be installed ({problem}). Check that npm and pip reach their registries, or run with --offline to \
         measure this program alone."
    )]
    NoPeer { problem: String },
    #[error("the release is incomplete, so nothing was published. Missing: {}", missing.join(", "))]
    Incomplete { missing: Vec<String> },
    #[error("packages differ from SHA256SUMS, so nothing was published. Run `cargo xtask dist` again.")]
    ChangedPackages,
    #[error("there are no packages for this machine: give --platform")]
    UnknownPlatform,
    #[error("the time of the release is unknown: set SOURCE_DATE_EPOCH, or run in a git checkout")]
    NoReleaseTime,
    #[error("{argument} is not LABEL=PATH or PATH of a program")]
    NotAProgram { argument: String },
}

impl LoadError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> LoadError {
        move |source| LoadError::Io { doing: doing.into(), source }
    }
}
