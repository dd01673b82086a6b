//! GitHub Copilot CLI. It ends its turn when a permission is refused.

use super::super::profile::{ModelInput, Modes, Profile, ProgramBehind, SignIn};
use super::{generic, mode};
use crate::agent::state_dir::{StateDir, StatePaths};
use crate::conversation::{AcpSetting, SettingValue};

const PLAN: &str = "https://agentclientprotocol.com/protocol/session-modes#plan";

const fn allow_all(value: &'static str) -> AcpSetting {
    AcpSetting::Option { id: "allow_all", value: SettingValue::Choice(value) }
}

pub(super) const PROFILE: Profile = Profile {
    name: "copilot",
    tested_version: "1.0.102",
    program: ProgramBehind::Package(&[
        "@github/copilot-linux-ARCH/copilot",
        "@github/copilot-linuxmusl-ARCH/copilot",
    ]),
    args: &["--acp", "--no-auto-update"],
    set_variables: &[("COPILOT_AUTO_UPDATE", "false")],
    own_variables: &[
        "COPILOT_HOME",
        "COPILOT_GITHUB_TOKEN",
        "GH_TOKEN",
        "GITHUB_TOKEN",
        "COPILOT_MODEL",
        "COPILOT_OFFLINE",
        "COPILOT_PROVIDER_BASE_URL",
        "COPILOT_PROVIDER_API_KEY",
        "COPILOT_PROVIDER_BEARER_TOKEN",
        "COPILOT_PROVIDER_TYPE",
    ],
    state: StatePaths {
        directories: &[
            StateDir { variable: Some("COPILOT_HOME"), home: ".copilot" },
            StateDir { variable: None, home: ".cache/copilot" },
            StateDir { variable: None, home: ".cache/Microsoft" },
        ],
        files: &[],
    },
    modes: Modes {
        asking: &[allow_all("off")],
        read_only: &[mode(PLAN), allow_all("off")],
        full_access: &[allow_all("on")],
    },
    model: ModelInput::Variable("COPILOT_MODEL"),
    has_plan: false,
    has_exit_codes: true,
    refusal_ends_turn: true,
    sign_in: SignIn { command: Some("copilot login"), variables: &[], files: &[] },
    ..generic::PROFILE
};
