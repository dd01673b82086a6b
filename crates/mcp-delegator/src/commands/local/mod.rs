//! Commands for tasks on this machine.

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

/// Failures of a command that submits a task to an agent.
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

/// Default limit of agent output in a response, in bytes.
pub fn output_budget() -> u32 {
    65_536
}
