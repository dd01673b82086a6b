//! The table of Claude Code. Measured with 2.1.325.

use crate::agent::capabilities::{AgentInput, Capabilities, MessageSupport, UsageScope};
use crate::agent::profile::Profile;
use crate::agent::state_dir::StateDir;
use crate::program::ProgramBehind;

pub(super) const SIGN_IN_COMMAND: &str = "claude auth login";

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
