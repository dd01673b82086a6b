//! Converts errors of providers into [`AppError`]: error code, context and suggestion.

use delegator_domain::task::{Provider, TaskId};
use delegator_engine::{ProviderError, ServiceError, UnsupportedAction};
use delegator_fleet::FleetError;

use crate::error::fleet::SET_DATABASE;
use crate::error::suggestion::{NextCall, Suggestion};
use crate::error::{AppError, ErrorCode, truncate_quote};

const SIGN_IN: &str = "codex login";

/// `task` is the task that exists although the call failed.
pub(super) fn provider_error(
    message: String,
    provider: Provider,
    task: Option<&TaskId>,
    error: ProviderError,
) -> AppError {
    let mut named = match &error {
        ProviderError::Service(ServiceError { error, .. }) => match error.downcast_ref::<FleetError>() {
            // Another query reads the same.
            Some(error @ FleetError::Corrupt { .. }) => {
                AppError { code: ErrorCode::AgentProtocolError, ..AppError::from(error.clone()) }
            }
            Some(error) => AppError::from(error.clone()),
            None => AppError::new(ErrorCode::Internal, message),
        },
        error => AppError::new(code(error, task.is_some()), message),
    };
    named = named.context("provider", provider.name());
    if let Some(task) = task {
        named = named.context("task_id", task.as_str());
    }
    if let Some(output) = error.output() {
        // Not a part of the message: it is not ours.
        named = named.context("provider_message", truncate_quote(output));
    }
    match error {
        ProviderError::NotSignedIn { .. } => named
            .suggest(format!("Run '{SIGN_IN}' and choose ChatGPT; an API key is not enough."))
            .fix_command(SIGN_IN.to_owned()),
        ProviderError::Unsupported { url: Some(url), .. } => {
            named.context("url", url.clone()).suggest(format!("Use the page of the task: {url}"))
        }
        ProviderError::NotAvailable { provider: Provider::Fleet, .. } => named.suggest(SET_DATABASE),
        ProviderError::Unsupported { action: UnsupportedAction::Attempts, .. } => {
            named.suggest("Submit the task several times, each with one attempt.")
        }
        ProviderError::Program { .. } => {
            named.suggest(Suggestion::with_call("See what is missing: {call}", NextCall::new(&["doctor"])))
        }
        ProviderError::Refused { .. } => named.suggest(Suggestion::with_call(
            "Check that the provider has this environment; {call} lists the configured ones.",
            NextCall::new(&["cloud", "list-environments"]),
        )),
        _ => named,
    }
}

/// A query about an existing task can be repeated once the provider is available again.
fn code(error: &ProviderError, is_query: bool) -> ErrorCode {
    match error {
        ProviderError::NotAvailable { .. } | ProviderError::Program { .. } if is_query => {
            ErrorCode::ResourceShortage
        }
        ProviderError::NotAvailable { .. } | ProviderError::Unsupported { .. } => ErrorCode::Unsupported,
        ProviderError::Program { .. } => ErrorCode::DependencyMissing,
        ProviderError::NotSignedIn { .. } => ErrorCode::Unauthenticated,
        ProviderError::Refused { .. } => ErrorCode::InvalidValue,
        ProviderError::UnknownTask { .. } => ErrorCode::NotFound,
        ProviderError::KeyConflict { .. } => ErrorCode::IdempotencyMismatch,
        ProviderError::Unreachable { .. } => ErrorCode::NetworkError,
        ProviderError::UnexpectedOutput { .. } => ErrorCode::AgentProtocolError,
        ProviderError::Service(_) => ErrorCode::Internal,
    }
}
