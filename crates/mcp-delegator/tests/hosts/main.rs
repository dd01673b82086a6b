//! Real MCP hosts, Claude Code and Codex from npm, with a fake model, an empty home and no network.
//!
//! Each starts our server over stdio, offers its tools to the model, and runs scripted calls. The agent is the scripted
//! one; its message must reach the model. `scripts/install-hosts` installs the hosts into `.tools/`. Without them these
//! tests fail; they do not skip.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod bytes;
mod claude_code;
mod codex;
mod plugins;
mod scenarios;
mod sessions;

use std::path::{Path, PathBuf};

use delegator_testkit::generated::workspace;
use delegator_testkit::program::RunOutput;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
/// The agent's final message, which the model must receive.
const AGENT_ANSWER: &str = "The well is 42 metres deep.";

/// One tool call of the plan.
#[derive(Debug)]
struct Call {
    tool: String,
    input: Value,
}

fn plan() -> Vec<Call> {
    let calls: Vec<Value> = serde_json::from_str(include_str!("plan.json")).unwrap();
    let word = |call: &Value| call["tool"].as_str().unwrap().to_owned();
    calls.iter().map(|call| Call { tool: word(call), input: call["input"].clone() }).collect()
}

/// A world with a scripted agent, in which a host can reach only the loopback interface.
fn stage() -> Stage {
    stage_of(PROGRAM)
}

fn stage_of(program: &str) -> Stage {
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": AGENT_ANSWER},
        {"turn_completed": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7}},
    ]);
    without_network(Stage::with_script(program, steps))
}

fn without_network(stage: Stage) -> Stage {
    // Codex refuses its sandbox helper if its home is below the temporary directory.
    stage.world.write("scratch/.keep", "");
    let scratch = stage.root().join("scratch").display().to_string();
    // No process listens on the proxy port, so no request leaves the machine.
    stage
        .variable("TMPDIR", &scratch)
        .variable("HTTPS_PROXY", "http://127.0.0.1:9")
        .variable("NO_PROXY", "127.0.0.1,localhost")
}

/// The variables our server needs, for hosts that pass little of their own environment.
fn server_variables(stage: &Stage) -> Vec<(&'static str, String)> {
    let root = stage.root();
    vec![
        ("MCP_DELEGATOR_CODEX_BIN", root.join("bin/codex").display().to_string()),
        ("MCP_DELEGATOR_HOME", root.join("home/state").display().to_string()),
    ]
}

fn installed(path: &str) -> PathBuf {
    let path = workspace().join(".tools").join(path);
    assert!(path.exists(), "{} is missing: run scripts/install-hosts", path.display());
    path
}

/// Runs a host to its end, with a timeout so that a hanging host does not hang the tests.
fn run_host(stage: &Stage, host: &Path, args: &[&str]) -> RunOutput {
    let timeout_args = [&["50", host.to_str().unwrap()], args].concat();
    let run = stage.world.run_as(Path::new("/usr/bin/timeout"), timeout_args);
    assert_eq!(run.exit, Some(0), "{run:?}");
    run
}

/// The JSON events a host prints, one per line.
fn events(run: &RunOutput) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{run:?}"))).collect()
}
