//! Agents of the Agent Client Protocol: everything that is specific to them, behind the functions of this file.
//!
//! The protocol itself is `conversation::acp` and, for what the agents print, `delegator-transcript`. Here is what differs
//! between agents: one table each (`profiles/`), and what follows from it. An agent without a table is any agent of the user's
//! configuration.

mod launch;
mod profile;
mod profiles;
mod program;
mod sign_in;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::capabilities::{AgentInput, Capabilities, MessageSupport};
use super::codex;
use super::environment::Variables;
use super::health::{HealthCheck, HealthStatus};
use super::locate::UntrustedTrees;
use super::probe::printed_output;

pub(super) use launch::{args, conversation, finish, set_variables, validate};
pub(super) use profiles::profile;

/// Inputs that no agent of the protocol can honour.
const UNSUPPORTED: &[AgentInput] =
    &[AgentInput::Profile, AgentInput::Images, AgentInput::OutputSchema, AgentInput::EnvPolicy];
const UNSUPPORTED_WITHOUT_EFFORT: &[AgentInput] = &[
    AgentInput::Profile,
    AgentInput::ReasoningEffort,
    AgentInput::Images,
    AgentInput::OutputSchema,
    AgentInput::EnvPolicy,
];

pub(super) fn capabilities(name: &str) -> Capabilities {
    let profile = profile(name);
    Capabilities {
        threads: true,
        sandbox: profile.has_sandbox,
        messages: if profile.can_steer { MessageSupport::RunningTurn } else { MessageSupport::NextTurn },
        usage: profile.usage,
        cost: profile.has_cost,
        plan: profile.has_plan,
        exit_codes: profile.has_exit_codes,
        unsupported_inputs: match profile.has_reasoning_effort {
            true => UNSUPPORTED,
            false => UNSUPPORTED_WITHOUT_EFFORT,
        },
    }
}

/// The program to start, and the arguments that come first.
pub(super) fn resolve_program(
    name: &str,
    found: PathBuf,
    path: Option<&OsStr>,
    untrusted: &UntrustedTrees,
) -> (PathBuf, Vec<OsString>) {
    program::resolve(found, &profile(name).program, path, untrusted)
}

/// Runs a known agent with `--version`.
pub(super) fn probe_version(
    name: &str,
    program: &Path,
    args: &[OsString],
    environment: &Variables,
    limit: Duration,
) -> Option<(u32, u32, u32)> {
    if profile(name).tested_version.is_empty() {
        return None;
    }
    let args = args.iter().map(OsString::as_os_str).chain([OsStr::new("--version")]);
    let set = profile(name).set_variables.iter().map(|(name, value)| (name.into(), value.into()));
    let environment = environment.iter().cloned().chain(set).collect();
    codex::parse_version(&printed_output(program, args, &environment, limit).ok()?)
}

/// Program and version, and whether that is a reason to warn.
pub(super) fn describe_program(
    name: &str,
    program: &Path,
    version: Option<(u32, u32, u32)>,
) -> (HealthStatus, String) {
    let (program, profile) = (program.display(), profile(name));
    let tested = profile.tested_version;
    match (version, profile.min_node) {
        _ if tested.is_empty() => (HealthStatus::Ok, program.to_string()),
        (Some((major, minor, patch)), _) => {
            (HealthStatus::Ok, format!("{program}, version {major}.{minor}.{patch} (tested: {tested})"))
        }
        (None, Some(node)) => {
            let message = format!("{program} does not report its version; it needs Node.js {node} or newer");
            (HealthStatus::Warning, message)
        }
        (None, None) => (HealthStatus::Warning, format!("{program} does not report its version")),
    }
}

pub(super) fn check_sign_in(name: &str, environment: &Variables) -> Option<HealthCheck> {
    sign_in::check(&profile(name).sign_in, environment)
}
