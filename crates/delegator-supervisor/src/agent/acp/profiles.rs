//! The tables of the built-in agents that speak the Agent Client Protocol.

use std::borrow::Cow;

use super::profile::{AcpProfile, ModelInput, Modes, SignInTraces};
use crate::agent::capabilities::{AgentInput, Capabilities, MessageSupport, UsageScope};
use crate::agent::profile::{PLAIN, Profile};
use crate::agent::state_dir::StateDir;
use crate::agent::{claude, codex};
use crate::conversation::{AcpSetting, SettingValue};
use crate::program::ProgramBehind;

const PROFILES: [&AcpProfile; 9] =
    [&GEMINI, &OPENCODE, &GOOSE, &QWEN, &COPILOT, &KIMI, &CLINE, &CLAUDE_ACP, &CODEX_ACP];

/// The table of the agent of this name. An agent of the user's configuration has none of its own.
pub(in crate::agent) fn acp_profile(name: &str) -> &'static AcpProfile {
    PROFILES.into_iter().find(|profile| profile.name == name).unwrap_or(&GENERIC)
}

/// A mode that is left out if the agent does not offer it: something else enforces the mode of the task.
const fn mode(id: &'static str) -> AcpSetting {
    AcpSetting::Mode { id, is_required: false }
}

const fn required(id: &'static str) -> AcpSetting {
    AcpSetting::Mode { id, is_required: true }
}

const fn choice(id: &'static str, value: &'static str) -> AcpSetting {
    AcpSetting::Option { id, value: SettingValue::Choice(Cow::Borrowed(value)) }
}

const fn switch(id: &'static str, value: bool) -> AcpSetting {
    AcpSetting::Option { id, value: SettingValue::Switch(value) }
}

const fn below_home(home: &'static str) -> StateDir {
    StateDir { variable: None, home }
}

/// A directory that a variable names, else one below HOME.
const fn named(variable: &'static str, home: &'static str) -> StateDir {
    StateDir { variable: Some(variable), home }
}

const UNSUPPORTED: &[AgentInput] =
    &[AgentInput::Profile, AgentInput::Images, AgentInput::OutputSchema, AgentInput::EnvPolicy];
const UNSUPPORTED_WITHOUT_EFFORT: &[AgentInput] = &[
    AgentInput::Profile,
    AgentInput::ReasoningEffort,
    AgentInput::Images,
    AgentInput::OutputSchema,
    AgentInput::EnvPolicy,
];

const CAPABILITIES: Capabilities = Capabilities {
    threads: true,
    sandbox: false,
    messages: MessageSupport::NextTurn,
    usage: UsageScope::Turn,
    cost: false,
    plan: true,
    exit_codes: false,
    unsupported_inputs: UNSUPPORTED_WITHOUT_EFFORT,
};

/// Any agent of the user's configuration: its command makes it speak the protocol, and nothing else is known.
const GENERIC: AcpProfile = AcpProfile {
    name: "",
    profile: Profile { capabilities: CAPABILITIES, ..PLAIN },
    args: &[],
    asking_variables: &[],
    modes: Modes { asking: &[], read_only: &[], full_access: &[] },
    model: ModelInput::Session,
    refusal_ends_turn: false,
    ignores_end_of_input: false,
    replays_late: false,
    min_node: None,
    sign_in: SignInTraces { variables: &[], files: &[] },
};

/// Gemini CLI. It reports no output of commands while its setting `tools.shell.enableInteractiveShell` is on,
/// which is the default, and never an exit code. A session that is loaded within the clock minute in which it
/// began has lost its history.
const GEMINI: AcpProfile = AcpProfile {
    name: "gemini",
    profile: Profile {
        capabilities: Capabilities { plan: false, ..CAPABILITIES },
        tested_version: "0.61.0",
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
        // As shipped it starts itself again, and SIGTERM to the outer process has no effect.
        set_variables: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
        state: &[below_home(".gemini")],
        sign_in_command: Some("gemini"),
        ..GENERIC.profile
    },
    args: &["--acp", "--skip-trust"],
    modes: Modes { asking: &[mode("default")], read_only: &[mode("plan")], full_access: &[mode("yolo")] },
    replays_late: true,
    sign_in: SignInTraces {
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"],
        files: &[".gemini/oauth_creds.json"],
    },
    ..GENERIC
};

/// opencode. It requests permission only if its configuration says so, and ends its turn when a permission is
/// refused. Enclosed, it is therefore not made to ask: what is not allowed fails by itself.
const OPENCODE: AcpProfile = AcpProfile {
    name: "opencode",
    profile: Profile {
        capabilities: Capabilities {
            usage: UsageScope::LastCall,
            cost: true,
            exit_codes: true,
            unsupported_inputs: UNSUPPORTED,
            ..CAPABILITIES
        },
        tested_version: "1.18.33",
        program: ProgramBehind::Package(&[
            "opencode-linux-ARCH/bin/opencode",
            "opencode-linux-ARCH-baseline/bin/opencode",
        ]),
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
        set_variables: &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
        state: &[
            named("XDG_DATA_HOME/opencode", ".local/share/opencode"),
            named("XDG_STATE_HOME/opencode", ".local/state/opencode"),
            named("XDG_CONFIG_HOME/opencode", ".config/opencode"),
            named("XDG_CACHE_HOME/opencode", ".cache/opencode"),
        ],
        // Without a key it uses free models of its own provider.
        sign_in_command: Some("opencode auth login"),
    },
    args: &["acp"],
    // It is merged into the permissions of its configuration.
    asking_variables: &[("OPENCODE_PERMISSION", r#"{"edit":"ask","bash":"ask"}"#)],
    modes: Modes { asking: &[], read_only: &[choice("mode", "plan")], full_access: &[] },
    refusal_ends_turn: true,
    ..GENERIC
};

/// goose. It reads files by commands, so its mode without tools is of no use for a read-only task: it is made
/// to ask instead.
const GOOSE: AcpProfile = AcpProfile {
    name: "goose",
    profile: Profile {
        capabilities: Capabilities {
            usage: UsageScope::LastCall,
            plan: false,
            exit_codes: true,
            ..CAPABILITIES
        },
        tested_version: "1.34.0",
        program: ProgramBehind::Package(&["@aaif/goose-binary-linux-ARCH/bin/goose"]),
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
        state: &[
            named("XDG_DATA_HOME/goose", ".local/share/goose"),
            named("XDG_STATE_HOME/goose", ".local/state/goose"),
            named("XDG_CONFIG_HOME/goose", ".config/goose"),
        ],
        sign_in_command: Some("goose configure"),
        ..GENERIC.profile
    },
    args: &["acp", "--with-builtin", "developer"],
    modes: Modes { asking: &[mode("approve")], read_only: &[mode("approve")], full_access: &[mode("auto")] },
    ignores_end_of_input: true,
    ..GENERIC
};

/// Qwen Code. Its first mode lets a model decide about permissions, so another one is always set. It ends its
/// turn when a permission is refused.
const QWEN: AcpProfile = AcpProfile {
    name: "qwen",
    profile: Profile {
        capabilities: Capabilities { plan: false, exit_codes: true, ..CAPABILITIES },
        tested_version: "0.24.4",
        // The installed script only starts this one, with other options of Node.js.
        program: ProgramBehind::Script("cli.js"),
        own_variables: &[
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "OPENAI_MODEL",
            "DASHSCOPE_API_KEY",
            "BAILIAN_CODING_PLAN_API_KEY",
            "QWEN_MODEL",
        ],
        // As shipped it starts itself again, and ending the outer process leaves the inner one running.
        set_variables: &[("QWEN_CODE_NO_RELAUNCH", "true")],
        state: &[below_home(".qwen")],
        sign_in_command: Some("qwen auth"),
    },
    args: &["--acp"],
    modes: Modes { asking: &[mode("default")], read_only: &[mode("plan")], full_access: &[mode("yolo")] },
    refusal_ends_turn: true,
    sign_in: SignInTraces {
        variables: &["OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY"],
        files: &[".qwen/oauth_creds.json", ".qwen/settings.json"],
    },
    ..GENERIC
};

const COPILOT_PLAN: &str = "https://agentclientprotocol.com/protocol/session-modes#plan";

/// GitHub Copilot CLI. It ends its turn when a permission is refused.
const COPILOT: AcpProfile = AcpProfile {
    name: "copilot",
    profile: Profile {
        capabilities: Capabilities { plan: false, exit_codes: true, ..CAPABILITIES },
        tested_version: "1.0.102",
        program: ProgramBehind::Package(&[
            "@github/copilot-linux-ARCH/copilot",
            "@github/copilot-linuxmusl-ARCH/copilot",
        ]),
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
        set_variables: &[("COPILOT_AUTO_UPDATE", "false")],
        state: &[
            named("COPILOT_HOME", ".copilot"),
            below_home(".cache/copilot"),
            below_home(".cache/Microsoft"),
        ],
        sign_in_command: Some("copilot login"),
    },
    args: &["--acp", "--no-auto-update"],
    modes: Modes {
        asking: &[choice("allow_all", "off")],
        read_only: &[mode(COPILOT_PLAN), choice("allow_all", "off")],
        full_access: &[choice("allow_all", "on")],
    },
    model: ModelInput::Variable("COPILOT_MODEL"),
    refusal_ends_turn: true,
    ..GENERIC
};

/// Kimi Code. It never requests permission for edits: only our enclosure or its plan mode prevents them.
const KIMI: AcpProfile = AcpProfile {
    name: "kimi",
    profile: Profile {
        capabilities: Capabilities { usage: UsageScope::None, exit_codes: true, ..CAPABILITIES },
        tested_version: "2.1.0",
        own_variables: &[
            "KIMI_CODE_HOME",
            "KIMI_API_KEY",
            "KIMI_MODEL_NAME",
            "KIMI_MODEL_API_KEY",
            "KIMI_MODEL_PROVIDER_TYPE",
            "KIMI_MODEL_BASE_URL",
        ],
        set_variables: &[("KIMI_CODE_NO_AUTO_UPDATE", "1")],
        state: &[named("KIMI_CODE_HOME", ".kimi-code")],
        sign_in_command: Some("kimi login"),
        ..GENERIC.profile
    },
    args: &["acp"],
    modes: Modes { asking: &[mode("default")], read_only: &[mode("plan")], full_access: &[mode("auto")] },
    min_node: Some(22),
    ..GENERIC
};

/// Cline. It starts a daemon that outlives it (the sweep ends that), and ends its turn when a permission is
/// refused.
const CLINE: AcpProfile = AcpProfile {
    name: "cline",
    profile: Profile {
        capabilities: Capabilities { usage: UsageScope::None, plan: false, ..CAPABILITIES },
        tested_version: "3.0.65",
        program: ProgramBehind::Package(&["@cline/cli-linux-ARCH/bin/cline"]),
        own_variables: &["CLINE_API_KEY", "CLINE_PROVIDER", "CLINE_MODEL"],
        state: &[below_home(".cline")],
        sign_in_command: Some("cline auth"),
        ..GENERIC.profile
    },
    args: &["--acp"],
    modes: Modes {
        asking: &[mode("act"), switch("auto_approve", false)],
        read_only: &[mode("plan"), switch("auto_approve", false)],
        full_access: &[mode("act"), switch("auto_approve", true)],
    },
    refusal_ends_turn: true,
    ignores_end_of_input: true,
    ..GENERIC
};

/// Claude Code behind the adapter `claude-agent-acp`. Its plan mode asks before edits as its first mode does,
/// and then leaves plan mode: it is not used.
const CLAUDE_ACP: AcpProfile = AcpProfile {
    name: "claude-acp",
    profile: Profile {
        capabilities: Capabilities {
            messages: MessageSupport::RunningTurn,
            cost: true,
            exit_codes: true,
            unsupported_inputs: UNSUPPORTED,
            ..CAPABILITIES
        },
        tested_version: "0.99.1",
        program: ProgramBehind::None,
        ..claude::PROFILE
    },
    // All permissions are granted by us in full access: its own mode for that refuses to run as root.
    modes: Modes {
        asking: &[mode("default")],
        read_only: &[mode("default")],
        full_access: &[mode("default")],
    },
    sign_in: SignInTraces {
        variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        files: &[".claude/.credentials.json"],
    },
    ..GENERIC
};

/// Codex behind the adapter `codex-acp`. Codex's own sandbox enforces the mode of the task, so its mode has
/// to be set. What it asks for is to leave its sandbox.
const CODEX_ACP: AcpProfile = AcpProfile {
    name: "codex-acp",
    profile: Profile {
        capabilities: Capabilities {
            sandbox: true,
            messages: MessageSupport::RunningTurn,
            exit_codes: true,
            unsupported_inputs: UNSUPPORTED,
            ..CAPABILITIES
        },
        tested_version: "2.6.0",
        own_variables: &["CODEX_HOME", "CODEX_PATH", "CODEX_API_KEY", "OPENAI_API_KEY"],
        set_variables: &[("NO_BROWSER", "1")],
        sign_in_command: codex::PROFILE.sign_in_command,
        ..GENERIC.profile
    },
    modes: Modes {
        asking: &[required("workspace-write")],
        read_only: &[required("read-only")],
        full_access: &[required("agent-full-access")],
    },
    sign_in: SignInTraces { variables: &["CODEX_API_KEY", "OPENAI_API_KEY"], files: &[".codex/auth.json"] },
    ..GENERIC
};

#[cfg(test)]
mod tests {
    use delegator_domain::agents::{AgentProtocol, BUILT_IN_AGENTS};

    use super::super::profile::check_sign_in;
    use super::*;
    use crate::agent::health::HealthStatus;
    use crate::variables::Variables;

    #[test]
    fn every_built_in_agent_of_the_protocol_has_a_table() {
        let is_acp = |protocol| protocol == AgentProtocol::Acp;
        let built_in: Vec<&str> =
            BUILT_IN_AGENTS.iter().filter(|agent| is_acp(agent.protocol)).map(|agent| agent.name).collect();
        assert_eq!(PROFILES.map(|profile| profile.name).as_slice(), built_in);
        assert_eq!(acp_profile("my-agent").name, GENERIC.name);
    }

    #[test]
    fn a_key_or_a_stored_sign_in_is_enough() {
        let temp = tempfile::tempdir().unwrap();
        let home = ("HOME".into(), temp.path().as_os_str().to_owned());
        let check = |more: &[(&str, &str)]| {
            let more = more.iter().map(|(name, value)| (name.into(), value.into()));
            let variables: Variables = [home.clone()].into_iter().chain(more).collect();
            let check = check_sign_in(acp_profile("gemini"), &variables).unwrap();
            (check.status, check.suggestion.is_some())
        };
        assert_eq!(check(&[("GEMINI_API_KEY", "")]), (HealthStatus::Warning, true));
        assert_eq!(check(&[("GEMINI_API_KEY", "k")]), (HealthStatus::Ok, false));
        std::fs::create_dir(temp.path().join(".gemini")).unwrap();
        std::fs::write(temp.path().join(".gemini/oauth_creds.json"), "{}").unwrap();
        assert_eq!(check(&[]), (HealthStatus::Ok, false));
        assert_eq!(check_sign_in(acp_profile("kimi"), &Vec::new()), None);
    }
}
