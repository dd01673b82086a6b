//! Tasks on this machine.

pub mod attach;
pub mod cancel;
pub mod exec;
pub mod results;
pub mod resume;
pub mod run;
pub mod status;
pub mod tasks;
pub mod wait;

use crate::error::ErrorCode;

/// How handing a task to an agent can fail.
pub const AGENT_FAILURES: &[ErrorCode] = &[
    ErrorCode::ConfirmationRequired,
    ErrorCode::InvalidId,
    ErrorCode::Unsupported,
    ErrorCode::PolicyBlocked,
    ErrorCode::PermissionDenied,
    ErrorCode::DependencyMissing,
    ErrorCode::DependencyVersion,
    ErrorCode::ThreadNotFound,
    ErrorCode::TaskNotFound,
    ErrorCode::IdempotencyMismatch,
    ErrorCode::Unauthenticated,
    ErrorCode::QuotaExhausted,
    ErrorCode::TimeoutIdle,
    ErrorCode::TimeoutHard,
    ErrorCode::RateLimited,
    ErrorCode::NetworkError,
    ErrorCode::SupervisorUnavailable,
    ErrorCode::Incomplete,
    ErrorCode::AgentFailed,
    ErrorCode::AgentExited,
    ErrorCode::AgentProtocolError,
];

/// Bytes of agent output an answer carries unless told otherwise.
pub fn output_budget() -> u32 {
    65_536
}
