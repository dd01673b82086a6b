//! One task on every kind of agent: it writes a file and runs a test. Each report has the same shape.

use std::path::Path;

use delegator_testkit::codex::world_with_codex;
use delegator_testkit::fake_model::codex_config;
use delegator_testkit::generated::workspace;
use delegator_testkit::program::{World, read_text};
use delegator_testkit::scripted_model::{Action, Script, ScriptedModel};
use delegator_testkit::stage::task_processes;
use serde_json::json;

use crate::PROGRAM;
use crate::claude_tasks::with_claude;

const TASK: &str = "Please do [script task].";
const TEST: &str = "import unittest\n\n\nclass Notes(unittest.TestCase):\n    def test_notes(self):\n        \
                    self.assertEqual(open(\"notes.txt\").read(), \"fixed\\n\")\n";
const TEST_COMMAND: &str = "python3 -m unittest test_notes";

/// What a report is expected to contain beyond what every agent reports.
struct Reports {
    tokens: bool,
    /// The commands of the agent, and with them the results of its tests.
    commands: bool,
}

/// Writes a file, runs the test and says so.
fn script(world: &World) -> Script {
    let path = world.project().join("notes.txt");
    vec![
        vec![Action::WriteFile { path, text: "fixed\n" }],
        vec![Action::Run(TEST_COMMAND.to_owned())],
        vec![Action::Say("Wrote notes.txt; its test passes.")],
    ]
}

/// A world with a project and a model that knows the script.
fn world_and_model() -> (World, ScriptedModel) {
    let world = world_with_codex(PROGRAM, "");
    let world = world.variable("PATH", "/usr/local/bin:/usr/bin:/bin");
    world.write("project/test_notes.py", TEST);
    let run = world.run_as(Path::new("/usr/bin/git"), ["init", "--quiet"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let model = ScriptedModel::start([("task", script(&world))]);
    (world, model)
}

/// A PATH that begins with the programs of the ACP agents.
fn path_with_acp_agents() -> String {
    let programs = workspace().join(".tools/acp-agents-1/node_modules/.bin");
    assert!(programs.exists(), "{} is missing: run scripts/install-agents", programs.display());
    format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display())
}

/// Runs the task and checks its report.
fn check(world: &World, agent: &str, reports: &Reports) {
    let args = ["local", "exec", TASK, "--agent", agent, "--mode", "workspace-write"];
    let accepted = world.run(args).json();
    let id = accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned();
    let data = &world.run(["local", "wait", &id, "--include-output"]).json()["data"];
    assert_eq!(data["state"], "completed", "{agent}: {data:#}");
    assert_eq!(data["final_message"], "Wrote notes.txt; its test passes.", "{agent}: {data:#}");
    assert_eq!(read_text(&world.project().join("notes.txt")), "fixed\n");
    let added = &data["metadata"]["file_operations"]["added_files"];
    assert!(added.as_array().is_some_and(|added| added.contains(&json!("notes.txt"))), "{agent}: {data:#}");
    let usage = &data["metadata"]["thread_info"]["token_usage"];
    assert_eq!(
        reports.tokens,
        usage["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0),
        "{agent}: {data:#}"
    );
    let tests = &data["metadata"]["test_results"];
    assert_eq!(reports.commands, tests["passed"] == 1, "{agent}: {data:#}");
    assert_eq!(task_processes(&id), Vec::<i32>::new(), "{agent} left processes");
}

#[test]
fn codex() {
    let (world, model) = world_and_model();
    world.write("home/.codex/config.toml", &codex_config(model.port));
    check(&world, "codex", &Reports { tokens: true, commands: true });
}

#[test]
fn qwen() {
    let (world, model) = world_and_model();
    let settings = json!({
        "security": {"auth": {"selectedType": "openai"}}, "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}, "tools": {"useRipgrep": false},
    });
    world.write("home/.qwen/settings.json", &settings.to_string());
    let world = world
        .variable("PATH", &path_with_acp_agents())
        .variable("OPENAI_API_KEY", "fake-key")
        .variable("OPENAI_BASE_URL", &format!("{}/v1", model.url()))
        .variable("OPENAI_MODEL", "scripted");
    check(&world, "qwen", &Reports { tokens: true, commands: true });
}

#[test]
fn opencode() {
    let (world, model) = world_and_model();
    let limit = json!({"context": 200_000, "output": 8000});
    let config = json!({
        "autoupdate": false, "share": "disabled", "model": "fake/scripted", "small_model": "fake/scripted",
        "provider": {"fake": {
            "npm": "@ai-sdk/openai-compatible", "name": "Fake",
            "options": {"baseURL": format!("{}/v1", model.url()), "apiKey": "fake-key"},
            "models": {"scripted": {"name": "Scripted", "tool_call": true, "limit": limit}},
        }},
    });
    world.write("home/.config/opencode/opencode.json", &config.to_string());
    let world = world.variable("PATH", &path_with_acp_agents());
    check(&world, "opencode", &Reports { tokens: true, commands: true });
}

#[test]
fn codex_app_server() {
    let (world, model) = world_and_model();
    world.write("home/.codex/config.toml", &codex_config(model.port));
    check(&world, "codex-app-server", &Reports { tokens: true, commands: true });
}

#[test]
fn claude() {
    let (world, model) = world_and_model();
    let world = with_claude(world, &model);
    check(&world, "claude", &Reports { tokens: true, commands: true });
}

/// Agents of the user's own: both are shell scripts that do what the task asks.
fn check_own_agent(protocol: &str, script: &str) {
    let (world, _model) = world_and_model();
    let agent = json!({"own": {"protocol": protocol, "command": ["/bin/sh", "-c", script]}});
    let world = world.variable("MCP_DELEGATOR_AGENTS", &agent.to_string());
    check(&world, "own", &Reports { tokens: false, commands: false });
}

#[test]
fn plain() {
    let work = format!("cat >/dev/null; echo fixed > notes.txt; {TEST_COMMAND} 2>/dev/null");
    check_own_agent("plain", &format!("{work} && printf 'Wrote notes.txt; its test passes.'"));
}

#[test]
fn idle_jsonl() {
    let message = json!({"type": "agent_message", "content": "Wrote notes.txt; its test passes."});
    let change = json!({"type": "file_change", "path": "notes.txt", "action": "write"});
    let work = format!("read -r task; echo fixed > notes.txt; echo '{change}'; {TEST_COMMAND} 2>/dev/null");
    check_own_agent(
        "idle-jsonl",
        &format!("{work} && echo '{message}' && echo '{{\"type\":\"idle\"}}'; cat >/dev/null"),
    );
}
