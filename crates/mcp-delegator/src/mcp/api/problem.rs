//! Errors of the HTTP API as problem documents (RFC 9457).

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::error::{AppError, ErrorCode, ExitCode};
use crate::output::call_syntax::CallSyntax;
use crate::output::outcome::Outcome;
use crate::output::values::{ProblemData, problems};

pub(super) const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request failed. `type`, `title`, `status` and `detail` as RFC 9457 defines them.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ProblemDocument {
    #[serde(rename = "type")]
    kind: String,
    /// What the code means in general.
    title: &'static str,
    status: u16,
    /// What is wrong with this request.
    pub(super) detail: String,
    /// As in `error.code` of the CLI envelope.
    pub(super) code: &'static str,
    suggestion: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<ProblemData>,
    /// What the command found nevertheless, such as the conflicts of a check.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    data: Option<Value>,
    request_id: Option<String>,
}

impl ProblemDocument {
    pub(super) fn of(error: &AppError, outcome: Option<&Outcome>) -> ProblemDocument {
        let code = error.code.facts().agent;
        ProblemDocument {
            kind: format!("urn:mcp-delegator:problem:{code}"),
            title: error.exit().meaning(),
            status: status_of(error).as_u16(),
            detail: error.message.clone(),
            code,
            suggestion: error.suggestion.as_ref().map(|suggestion| CallSyntax::Commands.sentence(suggestion)),
            problems: problems(error),
            data: outcome.and_then(Outcome::failure_data).map(|data| data.to_json()),
            request_id: outcome.map(|outcome| outcome.request_id.to_string()),
        }
    }

    pub(super) fn with_status(self, status: StatusCode) -> ProblemDocument {
        ProblemDocument { status: status.as_u16(), ..self }
    }

    pub(super) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// 401 means our token alone, so an agent that is not signed in is another status.
fn status_of(error: &AppError) -> StatusCode {
    match (error.code, error.exit()) {
        (ErrorCode::ConfirmationRequired, _) => StatusCode::PRECONDITION_REQUIRED,
        (_, ExitCode::ArgError) => StatusCode::BAD_REQUEST,
        (_, ExitCode::NotFound) => StatusCode::NOT_FOUND,
        (_, ExitCode::PermissionDenied) => StatusCode::FORBIDDEN,
        (_, ExitCode::RateLimited) => StatusCode::TOO_MANY_REQUESTS,
        (_, ExitCode::Unavailable) => StatusCode::SERVICE_UNAVAILABLE,
        (_, ExitCode::Timeout | ExitCode::Incomplete) => StatusCode::GATEWAY_TIMEOUT,
        (_, ExitCode::AgentFailed) => StatusCode::BAD_GATEWAY,
        (_, ExitCode::GeneralError) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::CONFLICT,
    }
}
