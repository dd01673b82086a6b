//! Whether another agent may run the task that one could not run.
//!
//! Only if the first one has certainly done nothing: it was not started, or it reported before its first item that it may not
//! use its model. After that it may have changed something, and a second agent would build on half of its work.

use delegator_domain::task::{FailureKind, TaskEnd};
use delegator_supervisor::run::RunResult;
use delegator_supervisor::verdict::has_acted;

/// Why the agent could not run, if another one may run instead. Redacted.
pub(super) fn reason_to_fall_back(result: &RunResult) -> Option<String> {
    let TaskEnd::Failed { kind, message, .. } = &result.end else { return None };
    let acted = has_acted(&result.report);
    let reason = match kind {
        FailureKind::SpawnFailed => message.clone(),
        FailureKind::UsageLimit if !acted => format!("its usage limit is reached: {message}"),
        FailureKind::Auth if !acted => format!("it is not signed in: {message}"),
        _ => return None,
    };
    Some(reason.trim_end_matches([':', ' ']).to_owned())
}
