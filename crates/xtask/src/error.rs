//! Why a tier could not be measured. A missed bound is not an error but a figure.

use std::io;

use delegator_engine::EngineError;
use delegator_registry::RegistryError;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("interrupted")]
    Interrupted,
    #[error("out of time: {doing}")]
    OutOfTime { doing: String },
    #[error("cannot {doing}: {source}")]
    Io { doing: String, source: io::Error },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("a server is gone")]
    ServerGone,
    #[error("a server refused: {answer}")]
    Refused { answer: String },
    #[error("{program} failed: {said}")]
    Program { program: String, said: String },
    #[error("there is no tier {given}; there are {}", known.join(", "))]
    UnknownTier { given: String, known: Vec<&'static str> },
}

impl LoadError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> LoadError {
        move |source| LoadError::Io { doing: doing.into(), source }
    }
}
