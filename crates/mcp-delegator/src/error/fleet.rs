//! Converts errors of the fleet's database and of providers into [`AppError`].

use delegator_domain::task::{Provider, TaskId};
use delegator_engine::{ProviderError, ServiceError, UnsupportedAction};
use delegator_fleet::{FleetError, SchemaProblem, UrlProblem};

use crate::error::suggestion::NextCall;
use crate::error::{AppError, ErrorCode, sentence, suggest_nearest, truncate_quote};

pub const SET_DATABASE: &str = "Set database_url or MCP_DELEGATOR_DATABASE_URL to the URL of its PostgreSQL database, or database_url_file \
                                to a file that contains it; docs/fleet.md shows how to set up a fleet.";

impl From<FleetError> for AppError {
    fn from(error: FleetError) -> Self {
        let named = AppError::new(fleet_code(&error), sentence(&error.to_string()));
        match error {
            FleetError::Unreachable { .. } => named.suggest(
                "Check that the server runs, and that this machine may connect to the host and port of the URL.",
            ),
            FleetError::NotAdmitted { .. } => named.suggest(
                "Check user, password and database of the URL. If its certificate is signed by an authority of your own, \
                 add sslrootcert=FILE to the URL. A server without TLS on a network that you trust needs sslmode=disable in it.",
            ),
            FleetError::PermissionDenied { .. } => named.suggest_call(
                "Submitters submit, read and cancel; workers run tasks, pause and drain. If the role of this URL is one of these, let the owner of the tables run the SQL that {call} prints.",
                NextCall::new(&["fleet", "grant"]),
            ),
            FleetError::Unavailable { .. } => {
                named.suggest("Look at the log of the database server; its disk may be full.")
            }
            FleetError::Refused { .. } => named.suggest("Look at the log of the database server."),
            FleetError::Schema(SchemaProblem::TooNew { .. }) => {
                named.suggest("Install the newer version of this program: another one has upgraded the tables.")
            }
            FleetError::Schema(_) => named.suggest_call(
                "Create or upgrade the tables with {call}, or start a worker: both need a role that may.",
                NextCall::new(&["fleet", "migrate"]),
            ),
            FleetError::NameInUse { .. } => named.suggest(
                "Choose another name, or stop the worker that has it; if that is gone, its name is free when its lease ends.",
            ),
            FleetError::UnknownWorker { worker, known } => {
                let known = known.iter().map(String::as_str);
                let nearest = || suggest_nearest(&worker, known.clone());
                named.suggest(if known.len() == 0 { "No worker is running.".to_owned() } else { nearest() })
            }
            FleetError::UnknownTask { .. } => named.suggest_call(
                "Run {call} to list the tasks that the fleet has.",
                NextCall::new(&["fleet", "tasks"]),
            ),
            FleetError::KeyConflict => named.suggest("Use a new idempotency key for a different task."),
            _ => named,
        }
    }
}

impl From<UrlProblem> for AppError {
    fn from(problem: UrlProblem) -> Self {
        // Neither message nor context repeats the URL: it may contain a password.
        AppError::new(
            ErrorCode::ConfigInvalid,
            format!("The database URL of the fleet cannot be used: {problem}."),
        )
        .suggest("It has the form postgres://USER@HOST:PORT/DATABASE; a password follows USER and a colon.")
    }
}

fn fleet_code(error: &FleetError) -> ErrorCode {
    match error {
        FleetError::Unreachable { .. } => ErrorCode::NetworkError,
        FleetError::NotAdmitted { .. } => ErrorCode::Unauthenticated,
        FleetError::PermissionDenied { .. } => ErrorCode::PermissionDenied,
        FleetError::Unavailable { .. } => ErrorCode::ResourceShortage,
        FleetError::Schema(SchemaProblem::Missing) => ErrorCode::DependencyMissing,
        FleetError::Schema(_) => ErrorCode::DependencyVersion,
        FleetError::Fenced { .. } | FleetError::SessionEnded => ErrorCode::WrongState,
        FleetError::NameInUse { .. } => ErrorCode::AlreadyExists,
        FleetError::UnknownWorker { .. } | FleetError::UnknownTask { .. } => ErrorCode::NotFound,
        FleetError::KeyConflict => ErrorCode::IdempotencyMismatch,
        FleetError::Refused { .. }
        | FleetError::Gap { .. }
        | FleetError::NotSealed { .. }
        | FleetError::Corrupt { .. } => ErrorCode::Internal,
    }
}

const SIGN_IN: &str = "codex login";

/// `task` is the task that exists although the call failed.
pub(super) fn provider_error(
    message: String,
    provider: Provider,
    task: Option<&TaskId>,
    error: ProviderError,
) -> AppError {
    let named = match &error {
        ProviderError::Service(ServiceError { error, .. }) => match error.downcast_ref::<FleetError>() {
            // Another query reads the same.
            Some(error @ FleetError::Corrupt { .. }) => {
                AppError { code: ErrorCode::AgentProtocolError, ..AppError::from(error.clone()) }
            }
            Some(error) => AppError::from(error.clone()),
            None => AppError::new(ErrorCode::Internal, message),
        },
        error => AppError::new(provider_code(error, task.is_some()), message),
    };
    let named = named
        .context("provider", provider.name())
        .optional_context("task_id", task.map(TaskId::as_str))
        // Not a part of the message: it is not ours.
        .optional_context("provider_message", error.output().map(truncate_quote));
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
            named.suggest_call("See what is missing: {call}", NextCall::new(&["doctor"]))
        }
        ProviderError::Refused { .. } => named.suggest_call(
            "Check that the provider has this environment; {call} lists the configured ones.",
            NextCall::new(&["cloud", "list-environments"]),
        ),
        _ => named,
    }
}

/// A query about an existing task can be repeated once the provider is available again.
fn provider_code(error: &ProviderError, is_query: bool) -> ErrorCode {
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
