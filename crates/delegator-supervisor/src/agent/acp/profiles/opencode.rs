//! opencode. It requests permission only if its configuration says so, and ends its turn when a permission is refused. Enclosed,
//! it is therefore not made to ask: what is not allowed fails by itself.

use super::super::profile::{Modes, Profile, ProgramBehind, SignIn};
use super::generic;
use crate::agent::capabilities::UsageScope;
use crate::agent::state_dir::{StateDir, StatePaths};
use crate::conversation::{AcpSetting, SettingValue};

pub(super) const PROFILE: Profile = Profile {
    name: "opencode",
    tested_version: "1.18.33",
    program: ProgramBehind::Package(&[
        "opencode-linux-ARCH/bin/opencode",
        "opencode-linux-ARCH-baseline/bin/opencode",
    ]),
    args: &["acp"],
    set_variables: &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
    // It is merged into the permissions of its configuration.
    asking_variables: &[("OPENCODE_PERMISSION", r#"{"edit":"ask","bash":"ask"}"#)],
    own_variables: &[
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_DIR",
        "OPENCODE_CONFIG_CONTENT",
        "OPENCODE_PERMISSION",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "OPENROUTER_API_KEY",
        "GROQ_API_KEY",
        "OPENCODE_API_KEY",
    ],
    state: StatePaths {
        directories: &[
            StateDir { variable: Some("XDG_DATA_HOME/opencode"), home: ".local/share/opencode" },
            StateDir { variable: Some("XDG_STATE_HOME/opencode"), home: ".local/state/opencode" },
            StateDir { variable: Some("XDG_CONFIG_HOME/opencode"), home: ".config/opencode" },
            StateDir { variable: Some("XDG_CACHE_HOME/opencode"), home: ".cache/opencode" },
        ],
        files: &[],
    },
    modes: Modes {
        asking: &[],
        read_only: &[AcpSetting::Option { id: "mode", value: SettingValue::Choice("plan") }],
        full_access: &[],
    },
    has_reasoning_effort: true,
    usage: UsageScope::LastCall,
    has_cost: true,
    has_exit_codes: true,
    refusal_ends_turn: true,
    // Without a key it uses free models of its own provider.
    sign_in: SignIn { command: Some("opencode auth login"), variables: &[], files: &[] },
    ..generic::PROFILE
};
