//! Tries a sandbox with a command that it must not permit.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::verification::{self, VerifyPlan, VerifyRequest};
use crate::enclosure::Enclosure;
use crate::program::{ProbeError, exit_and_output};
use crate::variables::Variables;

/// Runs a plan that creates `forbidden`. Succeeds if the command ran and the file does not exist.
pub fn probe_sandbox(plan: &VerifyPlan, forbidden: &Path, limit: Duration) -> Result<(), ProbeError> {
    let args = plan.args.iter().map(OsString::as_os_str);
    let (_, output) = exit_and_output(&plan.program, args, &plan.environment, limit)?;
    let is_sentinel = |line: &str| plan.sentinel.as_deref() == Some(line);
    if std::fs::remove_file(forbidden).is_ok() {
        return Err(ProbeError::SandboxNotEnforced);
    }
    if output.lines().any(is_sentinel) { Ok(()) } else { Err(ProbeError::NoSandbox { output }) }
}

/// The same with a command in an enclosure.
pub fn probe_enclosure(
    enclosure: &Enclosure,
    request: &VerifyRequest,
    environment: &Variables,
    forbidden: &Path,
    limit: Duration,
) -> Result<(), ProbeError> {
    let plan = verification::enclosed(request, environment);
    let args = enclosure.wrap(&plan.program, &plan.args);
    probe_sandbox(&VerifyPlan { program: enclosure.launcher.clone(), args, ..plan }, forbidden, limit)
}
