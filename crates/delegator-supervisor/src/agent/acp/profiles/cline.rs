//! Cline. It starts a daemon that outlives it (the sweep ends that), and ends its turn when a permission is refused.

use super::super::profile::{Modes, Profile, ProgramBehind, SignIn};
use super::{generic, mode};
use crate::agent::capabilities::UsageScope;
use crate::agent::state_dir::{StateDir, StatePaths};
use crate::conversation::{AcpSetting, SettingValue};

const fn auto_approve(value: bool) -> AcpSetting {
    AcpSetting::Option { id: "auto_approve", value: SettingValue::Switch(value) }
}

pub(super) const PROFILE: Profile = Profile {
    name: "cline",
    tested_version: "3.0.65",
    program: ProgramBehind::Package(&["@cline/cli-linux-ARCH/bin/cline"]),
    args: &["--acp"],
    own_variables: &["CLINE_API_KEY", "CLINE_PROVIDER", "CLINE_MODEL"],
    state: StatePaths { directories: &[StateDir { variable: None, home: ".cline" }], files: &[] },
    modes: Modes {
        asking: &[mode("act"), auto_approve(false)],
        read_only: &[mode("plan"), auto_approve(false)],
        full_access: &[mode("act"), auto_approve(true)],
    },
    usage: UsageScope::None,
    has_plan: false,
    refusal_ends_turn: true,
    ignores_end_of_input: true,
    sign_in: SignIn { command: Some("cline auth"), variables: &[], files: &[] },
    ..generic::PROFILE
};
