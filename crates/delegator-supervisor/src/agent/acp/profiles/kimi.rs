//! Kimi Code. It never requests permission for edits: only our enclosure or its plan mode prevents them.

use super::super::profile::{Modes, Profile, ProgramBehind, SignIn};
use super::{generic, mode};
use crate::agent::capabilities::UsageScope;
use crate::agent::state_dir::{StateDir, StatePaths};

pub(super) const PROFILE: Profile = Profile {
    name: "kimi",
    tested_version: "2.1.0",
    program: ProgramBehind::None,
    args: &["acp"],
    set_variables: &[("KIMI_CODE_NO_AUTO_UPDATE", "1")],
    own_variables: &[
        "KIMI_CODE_HOME",
        "KIMI_API_KEY",
        "KIMI_MODEL_NAME",
        "KIMI_MODEL_API_KEY",
        "KIMI_MODEL_PROVIDER_TYPE",
        "KIMI_MODEL_BASE_URL",
    ],
    state: StatePaths {
        directories: &[StateDir { variable: Some("KIMI_CODE_HOME"), home: ".kimi-code" }],
        files: &[],
    },
    modes: Modes { asking: &[mode("default")], read_only: &[mode("plan")], full_access: &[mode("auto")] },
    usage: UsageScope::None,
    has_exit_codes: true,
    min_node: Some(22),
    sign_in: SignIn { command: Some("kimi login"), variables: &[], files: &[] },
    ..generic::PROFILE
};
