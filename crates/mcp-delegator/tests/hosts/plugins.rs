//! The plugin of this repository, installed from its own marketplace. The model follows the skill: it starts the task of the
//! example, judges the result and applies it. In a terminal of Claude Code the monitor wakes it; in Codex it waits.

use std::os::unix::fs::symlink;
use std::path::Path;

use delegator_testkit::fake_model::{
    FakeModel, Protocol, Reply, TASK_PLACEHOLDER, mcp_call, message, text_block, tool_search, tool_use,
};
use delegator_testkit::generated::workspace;
use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, successful_turn};
use delegator_testkit::tmux::Terminal;
use serde_json::{Value, json};

use super::codex::{SHOWN_SERVER_NAME, input_items, with_home};
use super::{PROGRAM, claude_code, installed, run_host, without_network};

const CLAUDE: &str = "claude-code-2.1.325/node_modules/.bin/claude";
const CODEX: &str = "codex-0.166.0/node_modules/.bin/codex";
const PLUGIN: &str = "mcp-delegator@mcp-delegator";
/// The tools of the plugin, as Claude Code shows them.
const CLAUDE_TOOLS: &str = "mcp__plugin_mcp-delegator_mcp-delegator";
const FIXED: &str = "# fixed\n";

fn plugin() -> String {
    workspace().join("plugins/mcp-delegator").display().to_string()
}

/// The example of the skill, in this directory.
fn example_call(directory: &Path) -> Value {
    let skill = read_text(&workspace().join("plugins/mcp-delegator/skills/delegate/SKILL.md"));
    let (_, example) = skill.split_once("```json\n").unwrap();
    let mut input: Value = serde_json::from_str(example.split_once("```").unwrap().0).unwrap();
    input["working_dir"] = json!(directory);
    input
}

/// A repository whose test fails until the agent has fixed `leap.sh`, which it does once `go` exists. The program is on `PATH`.
fn stage() -> Stage {
    let stage = without_network(Stage::with_script(PROGRAM, json!([])));
    let go = stage.root().join("go").display().to_string();
    stage.set_script(successful_turn(&[
        json!({"wait_for_file": go}),
        json!({"write_file": {"path": "leap.sh", "text": FIXED}}),
    ]));
    stage.world.write("project/test.sh", "grep -q fixed leap.sh\n");
    stage.world.write("project/leap.sh", "# wrong\n");
    let commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "Begin"];
    for args in [&["init", "--quiet"][..], &["add", "."], &commit] {
        assert_eq!(stage.world.run_as(Path::new("/usr/bin/git"), args).exit, Some(0));
    }
    symlink(PROGRAM, stage.root().join("bin/mcp-delegator")).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", stage.root().join("bin").display());
    // Codex passes no variable to the server.
    stage.world.write("home/.config/mcp-delegator/config.toml", "verify_unsandboxed = true\n");
    stage.variable("PATH", &path)
}

fn fixed_file(stage: &Stage) -> String {
    read_text(&stage.world.project().join("leap.sh"))
}

#[test]
fn the_plugin_and_its_marketplace_are_valid_for_claude_code() {
    let stage = stage();
    for path in [plugin(), workspace().display().to_string()] {
        run_host(&stage, &installed(CLAUDE), &["plugin", "validate", "--strict", &path]);
    }
}

/// A terminal with Claude Code, whose first questions are answered.
fn claude_terminal(model: &FakeModel) -> (Stage, Terminal) {
    let stage =
        claude_code::with_model(stage(), model).variable("TERM", "xterm-256color").variable("PS1", "$ ");
    let project = stage.world.project().display().to_string();
    let answers = json!({
        "hasCompletedOnboarding": true,
        "customApiKeyResponses": {"approved": ["not-checked"], "rejected": []},
        "projects": {project: {"hasTrustDialogAccepted": true}},
    });
    stage.world.write("home/.claude/.claude.json", &answers.to_string());
    symlink(installed(CLAUDE), stage.root().join("bin/claude")).unwrap();
    let command = stage.world.command([""; 0]);
    let variables: Vec<(&str, String)> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?.to_owned())))
        .collect();
    let terminal = Terminal::start(&stage.world.project(), &variables);
    (stage, terminal)
}

#[test]
fn the_monitor_of_the_plugin_wakes_claude_code_when_a_task_has_ended() {
    let tool = |name: &str| format!("{CLAUDE_TOOLS}___codex_{name}");
    let task = json!({"task_id": TASK_PLACEHOLDER});
    let mut start = example_call(Path::new("."));
    start.as_object_mut().unwrap().remove("working_dir");
    let replies = vec![
        Reply::Output(vec![tool_use(&tool("local_exec"), &start)]),
        Reply::Output(vec![text_block("It is started.")]),
        Reply::Output(vec![tool_use(&tool("local_results"), &task)]),
        Reply::Output(vec![tool_use(&tool("apply"), &task)]),
        Reply::Output(vec![text_block("It is applied.")]),
    ];
    let model = FakeModel::start_with_protocol(Protocol::Messages, replies);
    let (stage, terminal) = claude_terminal(&model);
    let marketplace = workspace().display().to_string();
    terminal.run(&format!("claude plugin marketplace add {marketplace}"), &[]);
    let installed = terminal.run(&format!("claude plugin install {PLUGIN}"), &[]);
    assert!(installed.contains("Successfully installed"), "{installed}");
    terminal.type_line(&format!("claude --permission-mode default --allowedTools {CLAUDE_TOOLS}"));
    terminal.wait_for("the monitor", |screen| screen.contains("1 monitor"));
    terminal.send_keys(&["-l", "/delegate fix leap.sh"]);
    terminal.wait_for("the command", |screen| screen.contains("/delegate fix leap.sh"));
    terminal.send_keys(&["Enter"]);
    terminal.wait_for("the end of the turn", |screen| screen.contains("It is started."));
    assert_eq!(fixed_file(&stage), "# wrong\n");
    // Nothing is typed from here on.
    stage.world.write("go", "");
    terminal.wait_for("the end of the second turn", |screen| screen.contains("It is applied."));
    assert_eq!(fixed_file(&stage), FIXED);

    let requests = model.requests();
    let texts: Vec<String> = requests.iter().map(|request| request["messages"].to_string()).collect();
    assert!(texts[0].contains("# Delegate a task") && texts[0].contains("fix leap.sh"), "{}", texts[0]);
    assert!(texts[2].contains("<event>T-local-") && texts[2].contains("verified"), "{}", texts[2]);
    let offered: Vec<&str> =
        requests[0]["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    for skill in ["delegate", "tasks", "review-task"] {
        let text = read_text(&workspace().join(format!("plugins/mcp-delegator/skills/{skill}/SKILL.md")));
        for name in text.split('`').filter_map(|code| code.strip_prefix("_codex_")) {
            let name = name.split([' ', '"']).next().unwrap();
            assert!(offered.contains(&tool(name).as_str()), "{skill}: {name} is not in {offered:?}");
        }
    }
}

#[test]
fn codex_with_the_plugin_delegates_waits_and_applies() {
    let stage = with_home(stage());
    stage.world.write("go", "");
    let call = |tool: &str, input: &Value| {
        Reply::Output(vec![mcp_call(SHOWN_SERVER_NAME, &format!("_codex_{tool}"), input)])
    };
    let mut example = example_call(&stage.world.project());
    let complete = example.clone();
    example.as_object_mut().unwrap().remove("working_dir");
    let task = json!({"task_id": TASK_PLACEHOLDER});
    let model = FakeModel::start(vec![
        Reply::Output(vec![tool_search("delegate a coding task, wait for it, apply it")]),
        call("local_exec", &example),
        call("local_exec", &complete),
        call("local_wait", &task),
        call("apply", &task),
        Reply::Output(vec![message("It is applied.")]),
    ]);
    let approval = format!(
        "[plugins.\"{PLUGIN}\".mcp_servers.mcp-delegator]\ndefault_tools_approval_mode = \"approve\"\n"
    );
    let config = model.codex_config().replace("plugins = false", "plugins = true");
    stage.world.write("home/.codex/config.toml", &format!("{config}{approval}"));
    let codex = installed(CODEX);
    run_host(&stage, &codex, &["plugin", "marketplace", "add", &workspace().display().to_string()]);
    run_host(&stage, &codex, &["plugin", "add", PLUGIN]);
    run_host(
        &stage,
        &codex,
        &["exec", "--json", "--sandbox", "read-only", "$mcp-delegator:delegate fix leap.sh"],
    );

    let requests = model.requests();
    assert!(requests[0]["input"].to_string().contains("# Delegate a task"), "{}", requests[0]["input"]);
    let last = requests.last().unwrap();
    let results: Vec<String> =
        input_items(last, "function_call_output").iter().map(|result| result["output"].to_string()).collect();
    let [refused, started, ended, applied] = results.as_slice() else { panic!("{results:?}") };
    // Codex starts the server in the directory of the plugin.
    assert!(refused.contains("working_dir") && refused.contains("directory of a plugin"), "{refused}");
    assert!(started.contains("T-local-") && ended.contains("verified"), "{results:?}");
    assert!(!applied.contains("error"), "{applied}");
    assert_eq!(fixed_file(&stage), FIXED);
}
