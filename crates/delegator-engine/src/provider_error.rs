//! The error of a provider that runs tasks elsewhere.

use delegator_domain::task::Provider;

/// The messages are our own sentences; what a provider or its program printed is in `output`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    #[error("{} is not available here: {reason}", provider.description())]
    NotAvailable { provider: Provider, reason: String },
    #[error("could not run {program}: {problem}")]
    Program { program: String, problem: String },
    #[error("Codex is not signed in with ChatGPT")]
    NotSignedIn { output: String },
    #[error("{} cannot {action} a task", provider.description())]
    Unsupported {
        provider: Provider,
        action: &'static str,
        /// The page of the task, where it may be possible.
        url: Option<String>,
    },
    /// The request itself is wrong; repeating it does not help.
    #[error("{} refused the request", provider.description())]
    Refused { provider: Provider, output: String },
    #[error("{} does not know the task {id}", provider.description())]
    UnknownTask { provider: Provider, id: String },
    /// The service did not answer, or answered with an error of its own.
    #[error("{} could not be reached", provider.description())]
    Unreachable { provider: Provider, output: String },
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
            ProviderError::NotAvailable { .. }
            | ProviderError::Program { .. }
            | ProviderError::Unsupported { .. }
            | ProviderError::UnknownTask { .. } => None,
        }
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, ProviderError::Unreachable { .. })
    }

    /// Whether the provider may have accepted a task although its submission failed.
    pub(crate) fn may_have_accepted(&self) -> bool {
        matches!(self, ProviderError::Unreachable { .. } | ProviderError::UnexpectedOutput { .. })
    }
}
