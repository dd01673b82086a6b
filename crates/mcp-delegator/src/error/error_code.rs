//! The error map: one table from an error code to its exit code and its name in every envelope, and the exit
//! codes. `docs/errors.md` is generated from it.

use delegator_domain::named_enum;

named_enum! {
    /// Error families; `details.kind` of the tool envelope.
    pub enum ErrorKind {
        Usage = "usage",
        Payload = "payload",
        ConfirmationRequired = "confirmation_required",
        WrongState = "wrong_state",
        LockHeld = "lock_held",
        Config = "config",
        Unsupported = "unsupported",
        Dependency = "dependency",
        NotFound = "not_found",
        Conflict = "conflict",
        Policy = "permission_policy",
        Permission = "permission",
        Auth = "auth",
        Payment = "payment",
        Timeout = "timeout",
        RateLimited = "rate_limited",
        Unavailable = "unavailable",
        Supervisor = "supervisor_unavailable",
        Redirected = "redirected",
        Incomplete = "incomplete",
        PartialFailure = "partial_failure",
        AllItemsFailed = "all_items_failed",
        AgentFailed = "agent_failed",
        Cancelled = "cancelled",
        Internal = "internal",
        StrictWarnings = "strict_warnings",
    }
}

named_enum! {
    /// The stage at which the error occurred; `validation` guarantees that nothing was changed.
    pub enum Phase {
        Validation = "validation",
        Execution = "execution",
        Cleanup = "cleanup",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retryable {
    Yes,
    No,
    /// Only for commands declared safe: they change nothing, so repeating them is harmless.
    IfSafe,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SideEffects {
    None,
    Partial,
    Unknown,
    /// None for commands declared safe, partial for the others.
    NoneIfSafe,
    /// None for commands declared safe, unknown for the others.
    UnknownUnlessSafe,
}

#[derive(Debug, Clone, Copy)]
pub struct ErrorMapRow {
    pub kind: ErrorKind,
    pub exit: ExitCode,
    /// `error.code` of the CLI envelope.
    pub agent: &'static str,
    pub phase: Phase,
    pub retryable: Retryable,
    pub side_effects: SideEffects,
    /// `error.type` and `error.code` of the standard envelope.
    pub standard: (&'static str, &'static str),
    /// `error.code` of the tool envelope.
    pub tool: &'static str,
}

macro_rules! error_codes {
    ($($variant:ident => $kind:ident, $exit:ident, $agent:literal, $phase:ident, $retry:ident, $effects:ident,
       $standard_type:literal $standard_code:literal, $tool:literal;)*) => {
        /// Every error that the program can report. Several may share a name in an envelope: then they differ
        /// in what a caller can do, for example whether a retry can succeed (`NotReady`) or not
        /// (`WrongState`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode { $($variant),* }

        impl ErrorCode {
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant),*];

            pub fn facts(self) -> ErrorMapRow {
                match self {
                    $(ErrorCode::$variant => ErrorMapRow {
                        kind: ErrorKind::$kind,
                        exit: ExitCode::$exit,
                        agent: $agent,
                        phase: Phase::$phase,
                        retryable: Retryable::$retry,
                        side_effects: SideEffects::$effects,
                        standard: ($standard_type, $standard_code),
                        tool: $tool,
                    }),*
                }
            }
        }
    };
}

error_codes! {
    ArgError => Usage, ArgError, "ARG_ERROR", Validation, No, None, "ValidationError" "E_VALIDATION_001", "VALIDATION";
    UnknownFlag => Usage, ArgError, "UNKNOWN_FLAG", Validation, No, None, "ValidationError" "E_VALIDATION_002", "VALIDATION";
    InvalidValue => Usage, ArgError, "INVALID_VALUE", Validation, No, None, "ValidationError" "E_VALIDATION_003", "VALIDATION";
    MissingArgument => Usage, ArgError, "MISSING_ARGUMENT", Validation, No, None, "ValidationError" "E_VALIDATION_004", "VALIDATION";
    InvalidJson => Payload, ArgError, "INVALID_JSON", Validation, No, None, "ValidationError" "E_VALIDATION_005", "VALIDATION";
    StdinTooLarge => Payload, ArgError, "STDIN_TOO_LARGE", Validation, No, None, "ValidationError" "E_VALIDATION_006", "VALIDATION";
    InvalidCursor => Payload, ArgError, "INVALID_CURSOR", Validation, No, None, "ValidationError" "E_VALIDATION_007", "VALIDATION";
    InvalidId => Payload, ArgError, "INVALID_ID", Validation, No, None, "ValidationError" "E_VALIDATION_008", "VALIDATION";
    ConfirmationRequired => ConfirmationRequired, ArgError, "CONFIRMATION_REQUIRED", Validation, No, None, "ValidationError" "E_VALIDATION_009", "VALIDATION";
    WrongState => WrongState, Precondition, "WRONG_STATE", Validation, No, None, "ConflictError" "E_CONFLICT_002", "VALIDATION";
    NotReady => WrongState, Precondition, "WRONG_STATE", Validation, Yes, None, "ConflictError" "E_CONFLICT_002", "VALIDATION";
    LockHeld => LockHeld, Precondition, "LOCK_HELD", Execution, Yes, None, "ConflictError" "E_CONFLICT_003", "INTERNAL";
    ConfigInvalid => Config, Precondition, "CONFIG_INVALID", Validation, No, None, "ConfigurationError" "E_CONFIG_001", "VALIDATION";
    Unsupported => Unsupported, Precondition, "UNSUPPORTED", Validation, No, None, "ConfigurationError" "E_CONFIG_003", "UNSUPPORTED";
    DependencyMissing => Dependency, Precondition, "DEPENDENCY_MISSING", Validation, No, None, "DependencyError" "E_DEPENDENCY_001", "UNSUPPORTED";
    DependencyVersion => Dependency, Precondition, "DEPENDENCY_VERSION", Validation, No, None, "DependencyError" "E_DEPENDENCY_002", "UNSUPPORTED";
    NotFound => NotFound, NotFound, "NOT_FOUND", Execution, No, None, "NotFoundError" "E_NOTFOUND_001", "NOT_FOUND";
    TaskNotFound => NotFound, NotFound, "TASK_NOT_FOUND", Execution, No, None, "NotFoundError" "E_NOTFOUND_002", "NOT_FOUND";
    ThreadNotFound => NotFound, NotFound, "THREAD_NOT_FOUND", Execution, No, None, "NotFoundError" "E_NOTFOUND_003", "NOT_FOUND";
    AlreadyExists => Conflict, Conflict, "ALREADY_EXISTS", Execution, No, None, "ConflictError" "E_CONFLICT_001", "VALIDATION";
    IdempotencyMismatch => Conflict, Conflict, "IDEMPOTENCY_MISMATCH", Execution, No, None, "ConflictError" "E_CONFLICT_004", "VALIDATION";
    PolicyBlocked => Policy, PermissionDenied, "POLICY_BLOCKED", Validation, No, None, "PermissionError" "E_PERMISSION_002", "VALIDATION";
    PermissionDenied => Permission, PermissionDenied, "PERMISSION_DENIED", Execution, No, None, "PermissionError" "E_PERMISSION_001", "TOOL_ERROR";
    Unauthenticated => Auth, AuthRequired, "UNAUTHENTICATED", Execution, No, None, "PermissionError" "E_PERMISSION_003", "TOOL_ERROR";
    QuotaExhausted => Payment, PaymentRequired, "QUOTA_EXHAUSTED", Execution, No, None, "PermissionError" "E_PERMISSION_004", "TOOL_ERROR";
    TimeoutWall => Timeout, Timeout, "TIMEOUT", Execution, IfSafe, NoneIfSafe, "TimeoutError" "E_TIMEOUT_001", "TIMEOUT";
    TimeoutIdle => Timeout, Timeout, "TIMEOUT", Execution, IfSafe, NoneIfSafe, "TimeoutError" "E_TIMEOUT_002", "TIMEOUT";
    TimeoutHard => Timeout, Timeout, "TIMEOUT", Execution, IfSafe, NoneIfSafe, "TimeoutError" "E_TIMEOUT_003", "TIMEOUT";
    RateLimited => RateLimited, RateLimited, "RATE_LIMITED", Execution, Yes, None, "DependencyError" "E_DEPENDENCY_004", "TOOL_ERROR";
    ResourceShortage => Unavailable, Unavailable, "UNAVAILABLE", Execution, Yes, None, "DependencyError" "E_DEPENDENCY_007", "INTERNAL";
    NetworkError => Unavailable, Unavailable, "NETWORK_ERROR", Execution, Yes, None, "DependencyError" "E_DEPENDENCY_003", "TOOL_ERROR";
    SubmissionUnconfirmed => Unavailable, Unavailable, "NETWORK_ERROR", Execution, No, Unknown, "DependencyError" "E_DEPENDENCY_003", "TOOL_ERROR";
    SupervisorUnavailable => Supervisor, Unavailable, "SUPERVISOR_UNAVAILABLE", Execution, Yes, None, "DependencyError" "E_DEPENDENCY_006", "INTERNAL";
    CommandRenamed => Redirected, Redirected, "COMMAND_RENAMED", Validation, No, None, "ValidationError" "E_VALIDATION_011", "UNSUPPORTED";
    TypoCorrected => Redirected, Redirected, "TYPO_CORRECTED", Validation, No, None, "ValidationError" "E_VALIDATION_011", "UNSUPPORTED";
    Incomplete => Incomplete, Incomplete, "INCOMPLETE", Execution, IfSafe, NoneIfSafe, "TimeoutError" "E_TIMEOUT_004", "TIMEOUT";
    PartialFailure => PartialFailure, PartialFailure, "PARTIAL_FAILURE", Execution, No, Partial, "InternalError" "W_PARTIAL_001", "TOOL_ERROR";
    AllItemsFailed => AllItemsFailed, GeneralError, "ALL_ITEMS_FAILED", Execution, No, Unknown, "InternalError" "E_INTERNAL_004", "TOOL_ERROR";
    AgentFailed => AgentFailed, AgentFailed, "AGENT_FAILED", Execution, No, Partial, "DependencyError" "E_DEPENDENCY_005", "TOOL_ERROR";
    AgentExited => AgentFailed, AgentFailed, "AGENT_EXITED", Execution, No, Partial, "DependencyError" "E_DEPENDENCY_005", "TOOL_ERROR";
    AgentProtocolError => AgentFailed, AgentFailed, "AGENT_PROTOCOL_ERROR", Execution, No, Partial, "DependencyError" "E_DEPENDENCY_005", "TOOL_ERROR";
    Interrupted => Cancelled, Interrupted, "CANCELLED", Execution, No, Partial, "InternalError" "E_INTERNAL_003", "INTERNAL";
    Terminated => Cancelled, Terminated, "CANCELLED", Execution, No, Partial, "InternalError" "E_INTERNAL_003", "INTERNAL";
    Internal => Internal, GeneralError, "INTERNAL", Execution, IfSafe, UnknownUnlessSafe, "InternalError" "E_INTERNAL_001", "INTERNAL";
    IoError => Internal, GeneralError, "IO_ERROR", Execution, IfSafe, UnknownUnlessSafe, "InternalError" "E_INTERNAL_002", "INTERNAL";
    WarningsAsErrors => StrictWarnings, GeneralError, "WARNINGS_AS_ERRORS", Execution, No, Unknown, "ValidationError" "E_VALIDATION_012", "VALIDATION";
}

macro_rules! exit_codes {
    ($($variant:ident = $number:literal, $name:literal, $meaning:literal;)*) => {
        /// Exit code of the process. Scripts depend on the numbers: a number never changes its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum ExitCode {
            $($variant = $number,)*
        }

        impl ExitCode {
            pub const ALL: [ExitCode; [$($name),*].len()] = [$(ExitCode::$variant),*];

            pub fn number(self) -> u8 {
                self as u8
            }

            pub fn name(self) -> &'static str {
                match self {
                    $(ExitCode::$variant => $name,)*
                }
            }

            /// Meaning of the code, in at most 120 characters.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(ExitCode::$variant => $meaning,)*
                }
            }
        }
    };
}

exit_codes! {
    Success = 0, "SUCCESS", "Success. Also a successful query about a failed task.";
    GeneralError = 1, "GENERAL_ERROR", "A bug or an I/O error, or a batch whose items all failed for different reasons: check the state first.";
    ArgError = 2, "ARG_ERROR", "A bad flag, value or payload, or a missing confirmation. Nothing was changed.";
    PartialFailure = 3, "PARTIAL_FAILURE", "Some items of a batch failed, some succeeded.";
    Precondition = 4, "PRECONDITION", "Wrong state, bad configuration, a missing dependency or an unavailable feature.";
    NotFound = 5, "NOT_FOUND", "The task, thread, schema or file does not exist.";
    Conflict = 6, "CONFLICT", "The object exists already, or the idempotency key belongs to another call.";
    PermissionDenied = 7, "PERMISSION_DENIED", "Refused by the operating system, the sandbox or our policy.";
    AuthRequired = 8, "AUTH_REQUIRED", "Not signed in, or the credentials were refused.";
    PaymentRequired = 9, "PAYMENT_REQUIRED", "The quota of the agent's account is exhausted.";
    Timeout = 10, "TIMEOUT", "A time limit was reached: the call's own, or the agent's idle or hard limit.";
    RateLimited = 11, "RATE_LIMITED", "Too many requests upstream: wait, then retry.";
    Unavailable = 12, "UNAVAILABLE", "The network, the supervisor or a system resource is not available: retry.";
    Redirected = 13, "REDIRECTED", "The command was renamed: run error.redirect.command.";
    Incomplete = 14, "INCOMPLETE", "The time limit of this call passed; the task continues.";
    AgentFailed = 80, "AGENT_FAILED", "The agent's run failed.";
    Interrupted = 130, "INTERRUPTED", "Cancelled by SIGINT (Ctrl-C).";
    Terminated = 143, "TERMINATED", "Cancelled by SIGTERM.";
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        std::process::ExitCode::from(code.number())
    }
}
