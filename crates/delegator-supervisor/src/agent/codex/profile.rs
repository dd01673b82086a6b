//! The tables of `codex exec` and of the app server.

use crate::agent::capabilities::{AgentInput, Capabilities, MessageSupport, UsageScope};
use crate::agent::profile::Profile;
use crate::program::ProgramBehind;

pub(super) const SIGN_IN_COMMAND: &str = "codex login";

pub(in crate::agent) const PROFILE: Profile = Profile {
    capabilities: Capabilities {
        threads: true,
        sandbox: true,
        messages: MessageSupport::None,
        usage: UsageScope::Thread,
        cost: false,
        plan: true,
        exit_codes: true,
        unsupported_inputs: &[AgentInput::Ask],
    },
    tested_version: "0.166.0",
    // The layouts of current packages, and of those before about 0.126.
    program: ProgramBehind::Package(&[
        "@openai/codex-linux-ARCH/vendor/TRIPLE/bin/codex",
        "@openai/codex-linux-ARCH/vendor/TRIPLE/codex/codex",
        "@openai/codex/vendor/TRIPLE/bin/codex",
        "@openai/codex/vendor/TRIPLE/codex/codex",
    ]),
    // Its home, certificates and credentials.
    own_variables: &[
        "CODEX_HOME",
        "CODEX_CA_CERTIFICATE",
        "OPENAI_API_KEY",
        "CODEX_API_KEY",
        "CODEX_ACCESS_TOKEN",
        "OPENAI_ORGANIZATION",
        "OPENAI_PROJECT",
    ],
    set_variables: &[],
    state: &[],
    sign_in_command: Some(SIGN_IN_COMMAND),
};

pub(in crate::agent) const APP_SERVER_PROFILE: Profile = Profile {
    capabilities: Capabilities {
        messages: MessageSupport::RunningTurn,
        unsupported_inputs: &[AgentInput::Profile],
        ..PROFILE.capabilities
    },
    // Its log is parsed, which colours would disturb.
    set_variables: &[("NO_COLOR", "1")],
    ..PROFILE
};
