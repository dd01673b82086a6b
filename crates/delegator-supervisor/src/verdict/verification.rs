//! Decides the outcome of a verification: a pure function of our own actions and the exit status.

use delegator_domain::task::{ExitStatus, Verification};

use super::cause::Cause;

/// `began`: whether the command itself ever ran.
pub(crate) fn verification_outcome(
    cause: Option<&Cause>,
    exit: Option<ExitStatus>,
    began: bool,
) -> Verification {
    match cause {
        Some(Cause::Cancelled { .. }) => return Verification::Cancelled,
        Some(Cause::Limit(_)) if began => return Verification::TimedOut,
        Some(Cause::TooManyProcesses { .. }) => return Verification::TooManyProcesses,
        Some(Cause::Internal { .. } | Cause::WrongThread { .. } | Cause::Budget(_)) => {
            return Verification::Unknown;
        }
        Some(Cause::Limit(_)) | None => {}
    }
    match exit {
        _ if !began => Verification::SandboxFailed,
        Some(ExitStatus::Code(0)) => Verification::Verified,
        Some(_) => Verification::Refuted,
        None => Verification::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::LimitKind;

    use super::*;

    #[test]
    fn only_a_started_command_that_exits_0_verifies() {
        let code = |code| Some(ExitStatus::Code(code));
        let limit = Cause::Limit(LimitKind::Hard);
        let cancelled = Cause::Cancelled { reason: None };
        let cases = [
            (None, code(0), true, Verification::Verified),
            (None, code(3), true, Verification::Refuted),
            (None, Some(ExitStatus::Signal(11)), true, Verification::Refuted),
            (None, None, true, Verification::Unknown),
            (None, code(0), false, Verification::SandboxFailed),
            (None, code(1), false, Verification::SandboxFailed),
            (Some(&limit), code(0), true, Verification::TimedOut),
            (Some(&limit), code(143), false, Verification::SandboxFailed),
            (Some(&cancelled), code(0), true, Verification::Cancelled),
            (Some(&Cause::TooManyProcesses { count: 9 }), None, true, Verification::TooManyProcesses),
        ];
        for (cause, exit, began, expected) in cases {
            assert_eq!(verification_outcome(cause, exit, began), expected, "{cause:?} {exit:?} {began}");
        }
    }
}
