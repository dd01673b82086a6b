//! The table of Claude Code, measured with 2.1.325, and whether it can authenticate: `claude auth status`
//! prints JSON and exits with 0 if it has credentials, without using the network.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::agent::capabilities::{AgentInput, Capabilities, MessageSupport, UsageScope};
use crate::agent::health::{HealthCheck, HealthStatus};
use crate::agent::profile::Profile;
use crate::agent::state_dir::StateDir;
use crate::program::{ProgramBehind, exit_and_output};
use crate::variables::{Variables, variable};

const SIGN_IN_COMMAND: &str = "claude auth login";

pub(in crate::agent) const PROFILE: Profile = Profile {
    capabilities: Capabilities {
        threads: true,
        sandbox: false,
        messages: MessageSupport::NextTurn,
        usage: UsageScope::Turn,
        cost: true,
        plan: true,
        exit_codes: true,
        unsupported_inputs: &[AgentInput::Profile, AgentInput::Images, AgentInput::EnvPolicy],
    },
    tested_version: "2.1.325",
    program: ProgramBehind::Package(&[
        "@anthropic-ai/claude-code-linux-ARCH/claude",
        "@anthropic-ai/claude-code-linux-ARCH-musl/claude",
    ]),
    own_variables: &[
        "CLAUDE_CONFIG_DIR",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_CUSTOM_HEADERS",
        "ANTHROPIC_MODEL",
        "CLAUDE_CODE_OAUTH_TOKEN",
    ],
    set_variables: &[
        // A turn is over when it says so: otherwise commands and sub-agents go on after it and begin turns of
        // their own.
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        ("CLAUDE_CODE_DISABLE_CRON", "1"),
        // It offers no plan otherwise.
        ("CLAUDE_CODE_ENABLE_TODO_TOOLS", "1"),
        // A run must not replace the program of other runs.
        ("DISABLE_AUTOUPDATER", "1"),
    ],
    // Settings, sign-in and threads. It also works if it cannot write `~/.claude.json`, which defines servers
    // that the user's other sessions start: that file stays read-only.
    state: &[
        StateDir { variable: Some("CLAUDE_CONFIG_DIR"), home: ".claude" },
        StateDir { variable: Some("XDG_CACHE_HOME/claude-cli-nodejs"), home: ".cache/claude-cli-nodejs" },
    ],
    sign_in_command: Some(SIGN_IN_COMMAND),
};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AuthStatus {
    logged_in: bool,
    auth_method: Option<String>,
    api_provider: Option<String>,
}

/// Variables with which it authenticates against cloud providers. Agents get them only if the configuration
/// names them.
const CLOUD_PROVIDERS: [&str; 3] =
    ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"];

/// Whether it can authenticate, by `claude auth status`. `caller` are the variables of the caller.
pub(in crate::agent) fn check_sign_in(
    program: &Path,
    args: &[OsString],
    environment: &Variables,
    caller: &Variables,
    limit: Duration,
) -> HealthCheck {
    let args = args.iter().map(OsString::as_os_str).chain(["auth", "status"].map(OsStr::new));
    match exit_and_output(program, args, environment, limit) {
        Ok((is_success, output)) => check(is_success, &output, caller),
        Err(_) => HealthCheck::sign_in(HealthStatus::Warning, "`claude auth status` could not be run", None),
    }
}

fn check(is_success: bool, output: &str, caller: &Variables) -> HealthCheck {
    let printed: AuthStatus = serde_json::from_str(output.trim()).unwrap_or_default();
    if is_success && printed.logged_in {
        let words = [printed.auth_method, printed.api_provider].into_iter().flatten();
        let message = format!("signed in ({})", words.collect::<Vec<_>>().join(", "));
        return HealthCheck::sign_in(HealthStatus::Ok, message, None);
    }
    let suggestion = match CLOUD_PROVIDERS.iter().find(|name| variable(caller, name).is_some()) {
        Some(name) => {
            format!("Add {name} and the variables it needs to the configuration: [agents.claude] env")
        }
        None => format!("Run `{SIGN_IN_COMMAND}`, or set ANTHROPIC_API_KEY."),
    };
    HealthCheck::sign_in(HealthStatus::Problem, "not signed in", Some(suggestion))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_status_decides() {
        let none = Variables::new();
        let signed_in = r#"{"loggedIn":true,"authMethod":"api_key","apiProvider":"firstParty"}"#;
        let found = check(true, signed_in, &none);
        assert_eq!(
            (found.status, found.message.as_str()),
            (HealthStatus::Ok, "signed in (api_key, firstParty)")
        );
        for (is_success, output) in
            [(false, r#"{"loggedIn":false,"authMethod":"none"}"#), (true, "text"), (false, "")]
        {
            let found = check(is_success, output, &none);
            assert_eq!(found.status, HealthStatus::Problem);
            assert!(found.suggestion.unwrap().contains("claude auth login"));
        }
        let missing = Path::new("/no/such/program");
        let found = check_sign_in(missing, &[], &none, &none, Duration::from_secs(20));
        assert_eq!(found.status, HealthStatus::Warning);
        let caller = vec![("CLAUDE_CODE_USE_BEDROCK".into(), "1".into())];
        let found = check(false, "{}", &caller);
        assert!(found.suggestion.unwrap().contains("CLAUDE_CODE_USE_BEDROCK"));
    }
}
