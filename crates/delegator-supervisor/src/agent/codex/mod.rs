//! Codex: everything that is specific to it, behind the functions and constants of this file.
//!
//! Only [`super::Agent`] and its shared parts call them. What Codex prints is decoded by `delegator-transcript`, like the
//! output of every agent.

pub(super) mod app_server;
mod command_line;
mod environment;
mod error_message;
mod failures;
mod health;
mod npm_wrapper;
mod permissions;
mod project_trust;
mod sandbox;
mod sessions;
mod shell_snapshots;
mod sign_in;
mod stderr;
mod toml_text;
mod version;

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use super::capabilities::{AgentInput, Capabilities, MessageSupport, UsageScope};
use super::environment::Variables;
use super::health::HealthCheck;
use super::launch::{LaunchRequest, PlanError};
use super::leftovers::Leftovers;
use super::probe::{ProbeError, exit_and_output, printed_output};
use super::threads::ThreadLookup;
use super::verification::{SandboxRequest, VerifyPlan, VerifyRequest};
use crate::conversation::ConversationPlan;
use version::CodexVersion;

pub(super) use command_line::ArgsError;
pub(super) use environment::OWN_VARIABLES;
pub(crate) use error_message::{ErrorMessage, Link};
pub(super) use failures::reported_failure;
pub(super) use health::{check_home, tested_versions, version_warning};
pub(super) use npm_wrapper::native_program;
pub(super) use shell_snapshots::remove_shell_snapshots;
pub(crate) use stderr::{
    Message, NO_SANDBOX_HELPER, StderrLine, is_refused_write, parse_line, sandbox_advice,
};

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    threads: true,
    sandbox: true,
    messages: MessageSupport::None,
    usage: UsageScope::Thread,
    cost: false,
    plan: true,
    exit_codes: true,
    unsupported_inputs: &[AgentInput::Ask],
};

pub(super) const SIGN_IN_COMMAND: &str = "codex login";

type Version = Option<(u32, u32, u32)>;

/// The arguments of one run. Reads only whether the working directory has a `.codex` entry.
pub(super) fn args(
    request: &LaunchRequest,
    version: Version,
    workdir: impl AsFd,
) -> Result<Vec<OsString>, ArgsError> {
    command_line::args(request, CodexVersion::known_or_newest(version), project_trust::project_trust(workdir))
}

/// The arguments of a run of the app server, and what is said to it.
pub(super) fn app_server(
    request: &LaunchRequest,
    version: Version,
    workdir: impl AsFd,
) -> Result<(Vec<OsString>, ConversationPlan), PlanError> {
    let version = CodexVersion::known_or_newest(version);
    let args = app_server::args(request, version, project_trust::project_trust(workdir))?;
    Ok((args, app_server::conversation(request, version)?))
}

/// An error if this version cannot honour the request.
pub(super) fn validate(request: &LaunchRequest, version: Version) -> Result<(), ArgsError> {
    command_line::validate(request, CodexVersion::known_or_newest(version))
}

/// The first version in what a program prints about itself.
pub(super) fn parse_version(output: &str) -> Option<(u32, u32, u32)> {
    CodexVersion::from_output(output).map(|version| (version.major, version.minor, version.patch))
}

/// Runs `codex --version`; `args` are the configured arguments, which come first.
pub(super) fn probe_version(
    program: &Path,
    args: &[OsString],
    environment: &Variables,
    limit: Duration,
) -> Result<(u32, u32, u32), ProbeError> {
    let args = args.iter().map(OsString::as_os_str).chain([OsStr::new("--version")]);
    let output = printed_output(program, args, environment, limit)?;
    parse_version(&output).ok_or(ProbeError::NoVersion { output })
}

/// Whether Codex can authenticate, or a problem of its configuration. `environment` are the variables that the agent
/// gets, `caller` those of the caller.
pub(super) fn check_sign_in(
    program: &Path,
    args: &[OsString],
    environment: &Variables,
    caller: &Variables,
    limit: Duration,
) -> HealthCheck {
    let file = environment::codex_home(environment).map(|home| home.join("config.toml"));
    let args = args.iter().map(OsString::as_os_str).chain(["login", "status"].map(OsStr::new));
    let login = exit_and_output(program, args, environment, limit).ok();
    let login = login.map(|(is_success, output)| sign_in::LoginStatus { is_success, output });
    let problem = login.as_ref().and_then(|it| sign_in::configuration_problem(&it.output, file.as_deref()));
    if let Some(problem) = problem {
        return problem;
    }
    let config = file.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let provider = sign_in::Provider::configured(&config);
    sign_in::check(&provider, environment, caller, login.as_ref())
}

/// Whether Codex, in that environment, has a thread to resume.
pub(super) fn find_thread(environment: &Variables, thread_id: &str) -> ThreadLookup {
    match environment::codex_home(environment) {
        Some(codex_home) => sessions::find_thread(&codex_home, thread_id),
        None => ThreadLookup::NotSearchable,
    }
}

pub(super) fn leftovers(environment: &Variables) -> Leftovers {
    match environment::codex_home(environment) {
        Some(codex_home) => Leftovers::ShellSnapshots { codex_home },
        None => Leftovers::None,
    }
}

/// A verification in Codex's sandbox.
pub(super) fn sandboxed(
    program: &Path,
    version: Version,
    request: &VerifyRequest,
    sandbox: &SandboxRequest,
    environment: &Variables,
) -> VerifyPlan {
    sandbox::plan(program, CodexVersion::known_or_newest(version), request, sandbox, environment)
}
