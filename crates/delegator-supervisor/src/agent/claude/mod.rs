//! Claude Code: everything that is specific to it, behind the functions and constants of this file.
//!
//! It is started with `-p` and `stream-json` in both directions. Its permission prompts come to us (`conversation::claude`),
//! so its own permission modes are not used. It has no sandbox: the supervisor encloses it. Measured with 2.1.325.

mod command_line;
mod program;
mod project_settings;
mod sessions;
mod sign_in;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::Mode;

use super::capabilities::{AgentInput, Capabilities, MessageSupport, UsageScope};
use super::environment::{Variables, variable};
use super::launch::{LaunchRequest, PlanError};
use super::probe::{exit_and_output, printed_output};
use super::state_dir::{StateDir, StatePaths};
use super::threads::ThreadLookup;
use crate::agent::health::HealthCheck;
use crate::conversation::{ClaudePlan, ConversationPlan, PermissionPolicy};

pub(super) use command_line::{args, validate};
pub(super) use program::native_program;

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    threads: true,
    sandbox: false,
    messages: MessageSupport::NextTurn,
    usage: UsageScope::Turn,
    cost: true,
    plan: true,
    exit_codes: true,
    unsupported_inputs: &[AgentInput::Profile, AgentInput::Images, AgentInput::EnvPolicy],
};

pub(super) const SIGN_IN_COMMAND: &str = "claude auth login";

/// The version that everything here was measured with.
pub(super) const TESTED_VERSION: &str = "2.1.325";

/// Passed to Claude Code in addition to the variables of every agent.
pub(super) const OWN_VARIABLES: [&str; 7] = [
    "CLAUDE_CONFIG_DIR",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_MODEL",
    "CLAUDE_CODE_OAUTH_TOKEN",
];

/// Where it keeps its settings, its sign-in and its threads. It also works if it cannot write `~/.claude.json`, which defines
/// servers that the user's other sessions start: that file stays read-only.
pub(super) const STATE_PATHS: StatePaths = StatePaths {
    directories: &[
        StateDir { variable: Some("CLAUDE_CONFIG_DIR"), home: ".claude" },
        StateDir { variable: Some("XDG_CACHE_HOME/claude-cli-nodejs"), home: ".cache/claude-cli-nodejs" },
    ],
    files: &[],
};

/// Set for every run.
pub(super) const SET_VARIABLES: [(&str, &str); 4] = [
    // A turn is over when it says so: otherwise commands and sub-agents go on after it and begin turns of their own.
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
    ("CLAUDE_CODE_DISABLE_CRON", "1"),
    // It offers no plan otherwise.
    ("CLAUDE_CODE_ENABLE_TODO_TOOLS", "1"),
    // A run must not replace the program of other runs.
    ("DISABLE_AUTOUPDATER", "1"),
];

/// Runs `claude --version`, which prints `2.1.325 (Claude Code)`.
pub(super) fn probe_version(
    program: &Path,
    args: &[OsString],
    environment: &Variables,
    limit: Duration,
) -> Option<(u32, u32, u32)> {
    let args = args.iter().map(OsString::as_os_str).chain([OsStr::new("--version")]);
    parse_version(&printed_output(program, args, environment, limit).ok()?)
}

fn parse_version(output: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = output.split_whitespace().next()?.splitn(3, '.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

/// What is said to the agent. `is_enforced`: we enclose it.
pub(super) fn conversation(request: &LaunchRequest, is_enforced: bool) -> ConversationPlan {
    let mode = if request.preview { Mode::ReadOnly } else { request.mode };
    let writable_roots = std::iter::once(&request.workdir).chain(&request.add_dirs).cloned().collect();
    ConversationPlan::Claude(ClaudePlan {
        prompt: request.prompt(),
        permissions: PermissionPolicy { mode, ask: request.ask, is_enforced, writable_roots },
    })
}

/// Whether it can authenticate, by `claude auth status`.
pub(super) fn check_sign_in(
    program: &Path,
    args: &[OsString],
    environment: &Variables,
    caller: &Variables,
    limit: Duration,
) -> HealthCheck {
    let args = args.iter().map(OsString::as_os_str).chain(["auth", "status"].map(OsStr::new));
    let status = exit_and_output(program, args, environment, limit);
    sign_in::check(status.ok().as_ref().map(|(is_success, output)| (*is_success, output.as_str())), caller)
}

pub(super) fn find_thread(environment: &Variables, thread_id: &str) -> ThreadLookup {
    match config_dir(environment) {
        Some(config_dir) => sessions::find_thread(&config_dir.join("projects"), thread_id),
        None => ThreadLookup::NotSearchable,
    }
}

/// Its directory for settings, credentials and sessions in that environment.
fn config_dir(environment: &Variables) -> Option<PathBuf> {
    let value = |name: &str| variable(environment, name).filter(|value| !value.is_empty()).map(PathBuf::from);
    value("CLAUDE_CONFIG_DIR").or_else(|| Some(value("HOME")?.join(".claude")))
}

/// An input that cannot be passed on.
fn invalid(field: &'static str, problem: &'static str) -> PlanError {
    PlanError::Value { field, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_first_word() {
        assert_eq!(parse_version("2.1.325 (Claude Code)\n"), Some((2, 1, 325)));
        for other in ["", "claude 2.1", "2.1", "2.1.x (Claude Code)"] {
            assert_eq!(parse_version(other), None, "{other}");
        }
    }
}
