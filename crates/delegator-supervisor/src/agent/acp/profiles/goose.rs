//! goose. It reads files by commands, so its mode without tools is of no use for a read-only task: it is made to ask instead.

use super::super::profile::{Modes, Profile, ProgramBehind, SignIn};
use super::{generic, mode};
use crate::agent::capabilities::UsageScope;
use crate::agent::state_dir::{StateDir, StatePaths};

pub(super) const PROFILE: Profile = Profile {
    name: "goose",
    tested_version: "1.34.0",
    program: ProgramBehind::Package(&["@aaif/goose-binary-linux-ARCH/bin/goose"]),
    args: &["acp", "--with-builtin", "developer"],
    own_variables: &[
        "GOOSE_PROVIDER",
        "GOOSE_MODEL",
        "GOOSE_TEMPERATURE",
        "GOOSE_CONTEXT_LIMIT",
        "GOOSE_DISABLE_KEYRING",
        "GOOSE_TELEMETRY_ENABLED",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "OPENAI_API_KEY",
        "OPENAI_HOST",
        "OPENAI_BASE_PATH",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_HOST",
        "GOOGLE_API_KEY",
        "OPENROUTER_API_KEY",
        "GROQ_API_KEY",
        "XAI_API_KEY",
        "OLLAMA_HOST",
    ],
    state: StatePaths {
        directories: &[
            StateDir { variable: Some("XDG_DATA_HOME/goose"), home: ".local/share/goose" },
            StateDir { variable: Some("XDG_STATE_HOME/goose"), home: ".local/state/goose" },
            StateDir { variable: Some("XDG_CONFIG_HOME/goose"), home: ".config/goose" },
        ],
        files: &[],
    },
    modes: Modes { asking: &[mode("approve")], read_only: &[mode("approve")], full_access: &[mode("auto")] },
    usage: UsageScope::LastCall,
    has_plan: false,
    has_exit_codes: true,
    ignores_end_of_input: true,
    sign_in: SignIn { command: Some("goose configure"), variables: &[], files: &[] },
    ..generic::PROFILE
};
