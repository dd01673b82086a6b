//! Real hosts: Claude Code and Codex, from npm, with a model of ours, an empty home and no network.
//!
//! Each finds our server over stdio, shows its tools to the model, and carries out the plan in `plan.json`: delegate, wait,
//! read the results. The agent behind is the scripted one; what it said must come back to the model. `scripts/install-hosts`
//! puts the hosts into `.tools/`; without them these tests fail, they do not skip.

#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as expected")]

mod claude_code;
mod codex;

use std::path::{Path, PathBuf};

use delegator_testkit::generated::workspace;
use delegator_testkit::program::RunOutput;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
/// What only the agent knows.
const AGENT_ANSWER: &str = "The well is 42 metres deep.";

/// One call of the plan.
struct Call {
    tool: String,
    input: Value,
}

fn plan() -> Vec<Call> {
    let calls: Vec<Value> = serde_json::from_str(include_str!("plan.json")).unwrap();
    let word = |call: &Value| call["tool"].as_str().unwrap().to_owned();
    calls.iter().map(|call| Call { tool: word(call), input: call["input"].clone() }).collect()
}

/// A world with an agent that has found out, and nobody to call but the machine itself.
fn stage() -> Stage {
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": AGENT_ANSWER},
        {"turn_completed": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7}},
    ]);
    let stage = Stage::with_script(PROGRAM, steps);
    // Codex refuses its sandbox helper where its home lies below the temporary directory.
    stage.world.write("scratch/.keep", "");
    let scratch = stage.root().join("scratch").display().to_string();
    // A proxy where nobody listens: whatever a host tries, nothing leaves the machine.
    stage
        .variable("TMPDIR", &scratch)
        .variable("HTTPS_PROXY", "http://127.0.0.1:9")
        .variable("NO_PROXY", "127.0.0.1,localhost")
}

/// What the server needs of this world, for hosts that give it little of their own.
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

/// The host to its end, or to an end: one that hangs must not hang the tests.
fn run_host(stage: &Stage, host: &Path, args: &[&str]) -> RunOutput {
    let words = [&["50", host.to_str().unwrap()], args].concat();
    let run = stage.world.run_as(Path::new("/usr/bin/timeout"), words);
    assert_eq!(run.exit, Some(0), "{run:?}");
    run
}

/// The events a host tells, one a line.
fn events(run: &RunOutput) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{run:?}"))).collect()
}
