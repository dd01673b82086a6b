//! The complete set of exit codes.
//!
//! Call sites use these names; no other code writes a number. Codes are only added: scripts depend on their meaning.

/// Exit code of the process. Scripts depend on the numbers: a number never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ExitCode {
    Success = 0,
    GeneralError = 1,
    ArgError = 2,
    PartialFailure = 3,
    Precondition = 4,
    NotFound = 5,
    Conflict = 6,
    PermissionDenied = 7,
    AuthRequired = 8,
    PaymentRequired = 9,
    Timeout = 10,
    RateLimited = 11,
    Unavailable = 12,
    Redirected = 13,
    Incomplete = 14,
    AgentFailed = 80,
    Interrupted = 130,
    Terminated = 143,
}

impl ExitCode {
    pub const ALL: [ExitCode; 18] = [
        ExitCode::Success,
        ExitCode::GeneralError,
        ExitCode::ArgError,
        ExitCode::PartialFailure,
        ExitCode::Precondition,
        ExitCode::NotFound,
        ExitCode::Conflict,
        ExitCode::PermissionDenied,
        ExitCode::AuthRequired,
        ExitCode::PaymentRequired,
        ExitCode::Timeout,
        ExitCode::RateLimited,
        ExitCode::Unavailable,
        ExitCode::Redirected,
        ExitCode::Incomplete,
        ExitCode::AgentFailed,
        ExitCode::Interrupted,
        ExitCode::Terminated,
    ];

    pub fn number(self) -> u8 {
        self as u8
    }

    pub fn name(self) -> &'static str {
        match self {
            ExitCode::Success => "SUCCESS",
            ExitCode::GeneralError => "GENERAL_ERROR",
            ExitCode::ArgError => "ARG_ERROR",
            ExitCode::PartialFailure => "PARTIAL_FAILURE",
            ExitCode::Precondition => "PRECONDITION",
            ExitCode::NotFound => "NOT_FOUND",
            ExitCode::Conflict => "CONFLICT",
            ExitCode::PermissionDenied => "PERMISSION_DENIED",
            ExitCode::AuthRequired => "AUTH_REQUIRED",
            ExitCode::PaymentRequired => "PAYMENT_REQUIRED",
            ExitCode::Timeout => "TIMEOUT",
            ExitCode::RateLimited => "RATE_LIMITED",
            ExitCode::Unavailable => "UNAVAILABLE",
            ExitCode::Redirected => "REDIRECTED",
            ExitCode::Incomplete => "INCOMPLETE",
            ExitCode::AgentFailed => "AGENT_FAILED",
            ExitCode::Interrupted => "INTERRUPTED",
            ExitCode::Terminated => "TERMINATED",
        }
    }

    /// Meaning of the code, in at most 120 characters.
    pub fn meaning(self) -> &'static str {
        match self {
            ExitCode::Success => "Success. Also a successful query about a failed task.",
            ExitCode::GeneralError => {
                "A bug or an I/O error, or a batch whose items all failed for different reasons: check the state first."
            }
            ExitCode::ArgError => {
                "A bad flag, value or payload, or a missing confirmation. Nothing was changed."
            }
            ExitCode::PartialFailure => "Some items of a batch failed, some succeeded.",
            ExitCode::Precondition => {
                "Wrong state, bad configuration, a missing dependency or an unavailable feature."
            }
            ExitCode::NotFound => "The task, thread, schema or file does not exist.",
            ExitCode::Conflict => {
                "The object exists already, or the idempotency key belongs to another call."
            }
            ExitCode::PermissionDenied => "Refused by the operating system, the sandbox or our policy.",
            ExitCode::AuthRequired => "Not signed in, or the credentials were refused.",
            ExitCode::PaymentRequired => "The quota of the agent's account is exhausted.",
            ExitCode::Timeout => {
                "A time limit was reached: the call's own, or the agent's idle or hard limit."
            }
            ExitCode::RateLimited => "Too many requests upstream: wait, then retry.",
            ExitCode::Unavailable => {
                "The network, the supervisor or a system resource is not available: retry."
            }
            ExitCode::Redirected => "The command was renamed: run error.redirect.command.",
            ExitCode::Incomplete => "The time limit of this call passed; the task continues.",
            ExitCode::AgentFailed => "The agent's run failed.",
            ExitCode::Interrupted => "Cancelled by SIGINT (Ctrl-C).",
            ExitCode::Terminated => "Cancelled by SIGTERM.",
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        std::process::ExitCode::from(code.number())
    }
}
