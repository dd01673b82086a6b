//! What an error is about, by the code that the agent reported.

use delegator_domain::task::FailureKind;
use delegator_transcript::ErrorCode;

pub(super) fn kind_of_code(code: ErrorCode) -> Option<FailureKind> {
    match code {
        ErrorCode::UsageLimit => Some(FailureKind::UsageLimit),
        ErrorCode::RateLimit | ErrorCode::Overloaded => Some(FailureKind::RateLimit),
        ErrorCode::Unauthorized => Some(FailureKind::Auth),
        ErrorCode::ModelNotFound => Some(FailureKind::BadModel),
        ErrorCode::Sandbox => Some(FailureKind::Sandbox),
        ErrorCode::Connection { http_status: Some(status) } => kind_of_status(status),
        ErrorCode::Connection { http_status: None } => Some(FailureKind::Network),
    }
}

pub(super) fn kind_of_status(status: u16) -> Option<FailureKind> {
    match status {
        401 | 403 => Some(FailureKind::Auth),
        402 => Some(FailureKind::UsageLimit),
        429 | 529 => Some(FailureKind::RateLimit),
        408 | 500..=599 => Some(FailureKind::Network),
        _ => None,
    }
}
