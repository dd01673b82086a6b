//! The dashboard in a real browser: Chromium, driven by playwright-core. Each test is a scenario in `scenarios/`, a script
//! that starts the server, submits tasks and uses the pages as a person does.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::path::Path;
use std::process::{Command, Stdio};

use delegator_testkit::program::wait_for_output;
use delegator_testkit::stage::Stage;
use serde_json::{Map, Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/browser-1");
const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dashboard/scenarios");
/// `scripts/screenshots` copies them to `docs/images`.
const IMAGES: &str = env!("CARGO_TARGET_TMPDIR");
const ASSETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");

/// The agent does what its task text asks for: see `agent.sh`.
fn stage() -> Stage {
    let agent = std::fs::read_to_string(Path::new(SCENARIOS).join("agent.sh")).unwrap();
    let stage = Stage::with_shell_agent(PROGRAM, "");
    stage.write_program("bin/codex", &agent);
    stage.world.write("home/.config/mcp-delegator/config.toml", "verify_unsandboxed = true\n");
    stage.world.write("home/.gitconfig", "[user]\nname = Tester\nemail = tester@example.com\n");
    stage.write_session("0199a213-81c0-7800-8aa1-bbab2a035a53");
    stage
}

#[expect(clippy::disallowed_methods, reason = "the test starts the scenario")]
fn tool(program: &str) -> Command {
    assert!(Path::new(TOOLS).join("complete").exists(), "run scripts/install-browser first");
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a scenario to its end, in the world of a stage.
fn run(stage: &Stage, name: &str) {
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
}

macro_rules! scenarios {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            run(&stage(), stringify!($name));
        })*
    };
}

scenarios! {
    every_page_is_accessible_and_fits_a_phone
    a_review_becomes_the_next_turn_and_is_applied
    attempts_are_compared_and_one_is_adopted
    a_question_is_answered_on_a_phone
    nothing_is_missing_after_a_restart_of_the_server
    many_tabs_share_one_stream
    hostile_texts_stay_texts
    the_keyboard_alone_is_enough
    tasks_are_started_chosen_and_cancelled
    updates_keep_focus_selection_and_drafts
    a_session_permits_what_its_scope_allows_until_it_is_revoked
    pages_are_readable_without_scripts
    screenshots
}

/// The scripts are checked with types from their comments.
#[test]
fn the_scripts_have_no_type_errors() {
    let check = |file: &str, library: &str| {
        let mut command = tool("node");
        command.arg(Path::new(TOOLS).join("node_modules/typescript/bin/tsc"));
        command.args(["--noEmit", "--strict", "--checkJs", "--allowJs", "--moduleDetection", "force"]);
        command.args(["--target", "es2022", "--lib", library]);
        let run = wait_for_output(command.arg(Path::new(ASSETS).join(file)).spawn().unwrap());
        assert_eq!(run.exit, Some(0), "{}", run.stdout);
    };
    check("dashboard.js", "es2022,dom,dom.iterable");
    check("service-worker.js", "es2022,webworker");
}
