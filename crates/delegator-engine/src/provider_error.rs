//! The error of a provider that runs tasks elsewhere.

use std::error::Error;
use std::sync::Arc;

use delegator_domain::task::Provider;

/// What not every provider can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedAction {
    #[error("cancel a task")]
    Cancel,
    #[error("show the events of a task")]
    ShowEvents,
    #[error("continue a task")]
    Continue,
    #[error("try several solutions of a task")]
    Attempts,
    #[error("take a message for a task")]
    SendMessage,
}

/// The messages are our own sentences; what a provider or its program printed is in `output`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    #[error("{} is not available here: {reason}", provider.description())]
    NotAvailable { provider: Provider, reason: String },
    #[error("could not run {program}: {problem}")]
    Program { program: String, problem: String },
    #[error("Codex is not signed in with ChatGPT")]
    NotSignedIn { output: String },
    #[error("{} cannot {action}", provider.description())]
    Unsupported {
        provider: Provider,
        action: UnsupportedAction,
        /// The page of the task, where it may be possible.
        url: Option<String>,
    },
    /// The request itself is wrong; repeating it does not help.
    #[error("{} refused the request", provider.description())]
    Refused { provider: Provider, output: String },
    #[error("{} does not know the task {id}", provider.description())]
    UnknownTask { provider: Provider, id: String },
    /// Another submission used the idempotency key for another request.
    #[error("{} has another task with this idempotency key", provider.description())]
    KeyConflict { provider: Provider },
    /// The service did not answer, or answered with an error of its own.
    #[error("{} could not be reached", provider.description())]
    Unreachable { provider: Provider, output: String },
    #[error(transparent)]
    Service(ServiceError),
    #[error("the output of '{command}' was not understood")]
    UnexpectedOutput { command: String, output: String },
}

impl ProviderError {
    /// What the provider or its program printed.
    pub fn output(&self) -> Option<&str> {
        match self {
            ProviderError::NotSignedIn { output }
            | ProviderError::Refused { output, .. }
            | ProviderError::Unreachable { output, .. }
            | ProviderError::UnexpectedOutput { output, .. } => {
                Some(output).filter(|output| !output.is_empty()).map(String::as_str)
            }
            _ => None,
        }
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            ProviderError::Unreachable { .. } => true,
            ProviderError::Service(error) => error.is_transient,
            _ => false,
        }
    }

    /// Whether the provider may have accepted a task although its submission failed.
    pub(crate) fn may_have_accepted(&self) -> bool {
        match self {
            ProviderError::Unreachable { .. } | ProviderError::UnexpectedOutput { .. } => true,
            ProviderError::Service(error) => error.may_have_accepted,
            _ => false,
        }
    }
}

/// An error that the service of a provider defines. Who knows the service can downcast it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}")]
pub struct ServiceError {
    pub error: Arc<dyn Error + Send + Sync>,
    /// The same call may succeed later.
    pub is_transient: bool,
    /// There was no answer, so a task may have been accepted.
    pub may_have_accepted: bool,
}

impl PartialEq for ServiceError {
    fn eq(&self, other: &ServiceError) -> bool {
        self.error.to_string() == other.error.to_string()
    }
}

impl Eq for ServiceError {}
