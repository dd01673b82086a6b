//! Qwen Code. Its first mode lets a model decide about permissions, so another one is always set. It ends its turn when a
//! permission is refused.

use super::super::profile::{Modes, Profile, ProgramBehind, SignIn};
use super::{generic, mode};
use crate::agent::state_dir::{StateDir, StatePaths};

pub(super) const PROFILE: Profile = Profile {
    name: "qwen",
    tested_version: "0.24.4",
    // The installed script only starts this one, with other options of Node.js.
    program: ProgramBehind::Script("cli.js"),
    args: &["--acp"],
    // As shipped it starts itself again, and ending the outer process leaves the inner one running.
    set_variables: &[("QWEN_CODE_NO_RELAUNCH", "true")],
    own_variables: &[
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_MODEL",
        "DASHSCOPE_API_KEY",
        "BAILIAN_CODING_PLAN_API_KEY",
        "QWEN_MODEL",
    ],
    state: StatePaths { directories: &[StateDir { variable: None, home: ".qwen" }], files: &[] },
    modes: Modes { asking: &[mode("default")], read_only: &[mode("plan")], full_access: &[mode("yolo")] },
    has_plan: false,
    has_exit_codes: true,
    refusal_ends_turn: true,
    sign_in: SignIn {
        command: Some("qwen auth"),
        variables: &["OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY"],
        files: &[".qwen/oauth_creds.json", ".qwen/settings.json"],
    },
    ..generic::PROFILE
};
