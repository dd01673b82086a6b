//! Gemini CLI. It reports no output of commands while its setting `tools.shell.enableInteractiveShell` is on, which is the
//! default, and never an exit code. A session that is loaded within the clock minute in which it began has lost its history.

use super::super::profile::{Modes, Profile, ProgramBehind, SignIn};
use super::{generic, mode};
use crate::agent::state_dir::{StateDir, StatePaths};

const KEYS: &[&str] = &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"];

pub(super) const PROFILE: Profile = Profile {
    name: "gemini",
    tested_version: "0.61.0",
    program: ProgramBehind::None,
    args: &["--acp", "--skip-trust"],
    // As shipped it starts itself again, and SIGTERM to the outer process has no effect.
    set_variables: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
    own_variables: &[
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_GENAI_USE_GCA",
        "GOOGLE_GEMINI_BASE_URL",
        "GEMINI_MODEL",
        "GEMINI_TELEMETRY_ENABLED",
    ],
    state: StatePaths { directories: &[StateDir { variable: None, home: ".gemini" }], files: &[] },
    modes: Modes { asking: &[mode("default")], read_only: &[mode("plan")], full_access: &[mode("yolo")] },
    has_plan: false,
    replays_late: true,
    sign_in: SignIn { command: Some("gemini"), variables: KEYS, files: &[".gemini/oauth_creds.json"] },
    ..generic::PROFILE
};
