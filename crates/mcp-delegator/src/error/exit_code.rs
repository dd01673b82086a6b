//! The complete set of exit codes.
//!
//! Call sites use these names; no other code writes a number. Codes are only added: scripts depend on their
//! meaning.

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
