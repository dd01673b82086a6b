//! Runs scenarios, the scripts in `scenarios/`, in a world of their own. The benchmark of the dashboard uses this, too.

use std::path::Path;
use std::process::{Command, Stdio};

use delegator_testkit::program::wait_for_output;
use delegator_testkit::stage::Stage;
use serde_json::{Map, Value, json};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
pub(crate) const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/browser-1");
const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dashboard/scenarios");
/// `scripts/screenshots` copies them to `docs/images`.
const IMAGES: &str = env!("CARGO_TARGET_TMPDIR");

/// The agent does what its task text asks for: see `agent.sh`.
pub(crate) fn stage() -> Stage {
    let agent = std::fs::read_to_string(Path::new(SCENARIOS).join("agent.sh")).unwrap();
    let stage = Stage::with_shell_agent(PROGRAM, "");
    stage.write_program("bin/codex", &agent);
    stage.world.write("home/.config/mcp-delegator/config.toml", "verify_unsandboxed = true\n");
    stage.world.write("home/.gitconfig", "[user]\nname = Tester\nemail = tester@example.com\n");
    stage.write_session("0199a213-81c0-7800-8aa1-bbab2a035a53");
    stage
}

#[expect(clippy::disallowed_methods, reason = "the test starts the scenario")]
pub(crate) fn tool(program: &str) -> Command {
    assert!(Path::new(TOOLS).join("complete").exists(), "run scripts/install-browser first");
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a scenario to its end, in the world of a stage.
pub(crate) fn run(stage: &Stage, name: &str) -> String {
    let program = stage.world.command(["--version"]);
    let text = |value: &std::ffi::OsStr| Value::from(value.to_str().unwrap());
    let variables =
        program.get_envs().filter_map(|(name, value)| Some((name.to_str()?.to_owned(), text(value?))));
    let variables: Map<String, Value> = variables.collect();
    let world = json!({
        "program": PROGRAM, "tools": TOOLS, "images": IMAGES, "project": stage.world.project(), "root": stage.root(), "variables": variables,
    });
    let mut command = tool("node");
    command.arg(Path::new(SCENARIOS).join("play.mjs")).arg(name).env("WORLD", world.to_string());
    let run = wait_for_output(command.spawn().unwrap());
    assert_eq!(run.exit, Some(0), "{name}:\n{}\n{}", run.stdout, run.stderr);
    run.stdout
}
