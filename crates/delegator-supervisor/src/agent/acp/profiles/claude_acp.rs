//! Claude Code behind the adapter `claude-agent-acp`. Its plan mode asks before edits as its first mode does, and then leaves plan
//! mode: it is not used.

use super::super::profile::{Modes, Profile, ProgramBehind, SignIn};
use super::{generic, mode};
use crate::agent::claude;

pub(super) const PROFILE: Profile = Profile {
    name: "claude-acp",
    tested_version: "0.99.1",
    program: ProgramBehind::None,
    set_variables: &claude::SET_VARIABLES,
    own_variables: &claude::OWN_VARIABLES,
    state: claude::STATE_PATHS,
    // All permissions are granted by us in full access: its own mode for that refuses to run as root.
    modes: Modes {
        asking: &[mode("default")],
        read_only: &[mode("default")],
        full_access: &[mode("default")],
    },
    has_reasoning_effort: true,
    can_steer: true,
    has_cost: true,
    has_exit_codes: true,
    sign_in: SignIn {
        command: Some(claude::SIGN_IN_COMMAND),
        variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        files: &[".claude/.credentials.json"],
    },
    ..generic::PROFILE
};
