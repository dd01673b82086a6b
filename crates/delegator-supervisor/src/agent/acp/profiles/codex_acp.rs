//! Codex behind the adapter `codex-acp`. Codex's own sandbox enforces the mode of the task, so its mode has to be set. What it
//! asks for is to leave its sandbox.

use super::super::profile::{Modes, Profile, ProgramBehind, SignIn};
use super::generic;
use crate::agent::codex;
use crate::conversation::AcpSetting;

const fn required(id: &'static str) -> AcpSetting {
    AcpSetting::Mode { id, is_required: true }
}

pub(super) const PROFILE: Profile = Profile {
    name: "codex-acp",
    tested_version: "2.6.0",
    program: ProgramBehind::None,
    set_variables: &[("NO_BROWSER", "1")],
    own_variables: &["CODEX_HOME", "CODEX_PATH", "CODEX_API_KEY", "OPENAI_API_KEY"],
    modes: Modes {
        asking: &[required("workspace-write")],
        read_only: &[required("read-only")],
        full_access: &[required("agent-full-access")],
    },
    has_reasoning_effort: true,
    has_sandbox: true,
    can_steer: true,
    has_exit_codes: true,
    sign_in: SignIn {
        command: Some(codex::SIGN_IN_COMMAND),
        variables: &["CODEX_API_KEY", "OPENAI_API_KEY"],
        files: &[".codex/auth.json"],
    },
    ..generic::PROFILE
};
