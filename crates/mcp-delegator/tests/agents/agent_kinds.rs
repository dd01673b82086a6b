//! The kinds of agents, and how a world gets each of them. Five are real programs that use the scripted model. The two
//! of the user's own are shell scripts that do what the model would have them do.

use delegator_testkit::fake_model::codex_config;
use delegator_testkit::generated::workspace;
use delegator_testkit::program::World;
use delegator_testkit::scripted_model::{Action, Script, ScriptedModel};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentKind {
    Codex,
    CodexAppServer,
    Claude,
    Qwen,
    Opencode,
    Plain,
    IdleJsonl,
}

/// Makes a test of every check for every kind of agent.
macro_rules! for_every_agent {
    ($($check:ident),*) => {
        $(mod $check {
            use crate::agent_kinds::AgentKind;

            #[test]
            fn codex() {
                super::$check(AgentKind::Codex);
            }
            #[test]
            fn codex_app_server() {
                super::$check(AgentKind::CodexAppServer);
            }
            #[test]
            fn claude() {
                super::$check(AgentKind::Claude);
            }
            #[test]
            fn qwen() {
                super::$check(AgentKind::Qwen);
            }
            #[test]
            fn opencode() {
                super::$check(AgentKind::Opencode);
            }
            #[test]
            fn plain() {
                super::$check(AgentKind::Plain);
            }
            #[test]
            fn idle_jsonl() {
                super::$check(AgentKind::IdleJsonl);
            }
        })*
    };
}
pub(crate) use for_every_agent;

impl AgentKind {
    /// The name by which a task selects it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            AgentKind::Codex => "codex",
            AgentKind::CodexAppServer => "codex-app-server",
            AgentKind::Claude => "claude",
            AgentKind::Qwen => "qwen",
            AgentKind::Opencode => "opencode",
            AgentKind::Plain | AgentKind::IdleJsonl => "own",
        }
    }

    /// Whether the shell scripts of this file stand for the model.
    pub(crate) fn is_own(self) -> bool {
        self.name() == "own"
    }

    /// Adds the agent to a world. It follows the scripts, which the model knows.
    pub(crate) fn install(self, world: World, model: &ScriptedModel, scripts: &[(&str, Script)]) -> World {
        match self {
            AgentKind::Codex | AgentKind::CodexAppServer => {
                // The world is below the temporary directory, where Codex lets commands write.
                let narrow =
                    "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n";
                world.write("home/.codex/config.toml", &format!("{}{narrow}", codex_config(model.port)));
                world
            }
            AgentKind::Claude => {
                with_passed_variables(world, self.name(), &[("CLAUDE_CODE_MAX_RETRIES", "1")])
                    .variable("PATH", &path_with(".tools/claude-code-2.1.325"))
                    .variable("ANTHROPIC_BASE_URL", &model.url())
                    .variable("ANTHROPIC_API_KEY", "fake-key")
            }
            AgentKind::Qwen => with_qwen(world, model),
            AgentKind::Opencode => with_opencode(world, model),
            AgentKind::Plain => with_own(world, "plain", &plain_program(scripts)),
            AgentKind::IdleJsonl => with_own(world, "idle-jsonl", &idle_program(scripts)),
        }
    }
}

/// A PATH that begins with the programs of a folder of npm packages.
fn path_with(folder: &str) -> String {
    let programs = workspace().join(folder).join("node_modules/.bin");
    assert!(programs.exists(), "{} is missing: run scripts/test, which installs it", programs.display());
    format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display())
}

fn with_qwen(world: World, model: &ScriptedModel) -> World {
    let settings = json!({
        "security": {"auth": {"selectedType": "openai"}}, "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}, "tools": {"useRipgrep": false},
    });
    world.write("home/.qwen/settings.json", &settings.to_string());
    world
        .variable("PATH", &path_with(".tools/acp-agents-1"))
        .variable("OPENAI_API_KEY", "fake-key")
        .variable("OPENAI_BASE_URL", &format!("{}/v1", model.url()))
        .variable("OPENAI_MODEL", "scripted")
}

fn with_opencode(world: World, model: &ScriptedModel) -> World {
    let limit = json!({"context": 200_000, "output": 8000});
    let config = json!({
        "autoupdate": false, "share": "disabled", "model": "fake/scripted", "small_model": "fake/scripted",
        "provider": {"fake": {
            "npm": "@ai-sdk/openai-compatible", "name": "Fake",
            "options": {"baseURL": format!("{}/v1", model.url()), "apiKey": "fake-key"},
            "models": {"scripted": {"name": "Scripted", "tool_call": true, "limit": limit}},
        }},
    });
    // It would wait for servers that it cannot reach. Nor does it install anything while it has no configuration file.
    let offline =
        ["MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD"].map(|it| format!("OPENCODE_DISABLE_{it}"));
    let offline: Vec<(&str, &str)> = offline.iter().map(|name| (name.as_str(), "1")).collect();
    with_passed_variables(world, "opencode", &offline)
        .variable("OPENCODE_CONFIG_CONTENT", &config.to_string())
        .variable("PATH", &path_with(".tools/acp-agents-1"))
}

/// Sets variables that a built-in agent gets only if the user's configuration names them.
fn with_passed_variables(world: World, agent: &str, variables: &[(&str, &str)]) -> World {
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    let world = world.variable("MCP_DELEGATOR_AGENTS", &json!({agent: {"env": names}}).to_string());
    variables.iter().fold(world, |world, (name, value)| world.variable(name, value))
}

fn with_own(world: World, protocol: &str, program: &str) -> World {
    let agent = json!({"own": {"protocol": protocol, "command": ["/bin/sh", "-c", program]}});
    world.variable("MCP_DELEGATOR_AGENTS", &agent.to_string())
}

/// Words of the shell that report to the supervisor.
struct Lines {
    say: fn(&str) -> String,
    changed: fn(&str) -> String,
}

fn plain_program(scripts: &[(&str, Script)]) -> String {
    let lines = Lines { say: |text| format!("printf %s {}", quoted(text)), changed: |_| ":".to_owned() };
    format!("task=$(cat)\n{}", cases(scripts, &lines))
}

fn idle_program(scripts: &[(&str, Script)]) -> String {
    let lines = Lines {
        say: |text| echo(&json!({"type": "agent_message", "content": text})),
        changed: |path| echo(&json!({"type": "file_change", "path": path, "action": "write"})),
    };
    format!("read -r task\n{}{}\ncat > /dev/null\n", cases(scripts, &lines), echo(&json!({"type": "idle"})))
}

fn echo(event: &Value) -> String {
    format!("echo {}", quoted(&event.to_string()))
}

/// Does what the script that the task names says. What commands print goes to standard error.
fn cases(scripts: &[(&str, Script)], lines: &Lines) -> String {
    let line = |action: &Action| match action {
        Action::Say(text) => (lines.say)(text),
        Action::Run(command) => format!("sh -c {} >&2", quoted(command)),
        Action::WriteFile { path, text } => {
            let path = path.display().to_string();
            format!("printf %s {} > {} && {}", quoted(text), quoted(&path), (lines.changed)(&path))
        }
        Action::RunUnsandboxed(_) | Action::Fail { .. } | Action::Hold => {
            panic!("a shell script cannot do this: {action:?}")
        }
    };
    let case = |(name, script): &(&str, Script)| {
        let steps: Vec<String> = script.iter().flatten().map(line).collect();
        format!("*'[script {name}]'*)\n{}\n;;\n", steps.join("\n"))
    };
    format!("case $task in\n{}esac\n", scripts.iter().map(case).collect::<String>())
}

/// A word of the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
