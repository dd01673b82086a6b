//! Other people's clients over stdio: the SDKs run the whole workflow in every era they know, and the Inspector looks for
//! schemas that some host would not take.

use std::path::PathBuf;

use delegator_testkit::generated::workspace;
use serde_json::Value;

use crate::PROGRAM;
use crate::client::quick_stage;

fn sdks_dir() -> PathBuf {
    let place = workspace().join(".tools/sdks-1");
    assert!(place.join("complete").exists(), "the SDKs are not there: run scripts/install-sdks");
    place
}

/// The Node that comes with the conformance suite: the Inspector needs a recent one.
fn node() -> PathBuf {
    let node = workspace().join(".tools/conformance-0.2.0-alpha.12/node_modules/.bin/node");
    assert!(node.exists(), "Node is not there: run scripts/install-conformance");
    node
}

fn script(name: &str) -> String {
    format!("{}/tests/mcp/clients/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// What the workflow came to, in the words of a client.
fn assert_workflow_done(told: &Value, version: &str) {
    assert_eq!(told["version"], version, "{told}");
    assert_eq!(told["tools"], 15, "{told}");
    assert!(told["waited"].as_str().unwrap().contains("completed"), "{told}");
    assert_eq!(told["final_message"], "All done.", "{told}");
    assert_eq!(told["refused"], true, "{told}");
    assert!(told["progress"].as_u64() >= Some(1), "{told}");
    assert!(told["resources"].as_u64() >= Some(7), "{told}");
    assert_eq!(told["prompts"], 2, "{told}");
}

#[test]
fn the_python_sdk_runs_the_workflow_in_both_eras() {
    let python = sdks_dir().join("python/bin/python");
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")] {
        let stage = quick_stage();
        let run = stage.world.run_as(&python, [&script("workflow.py"), PROGRAM, mode]);
        assert_eq!(run.exit, Some(0), "{run:?}");
        assert_workflow_done(&run.json(), version);
    }
}

#[test]
fn the_typescript_sdks_run_the_workflow_in_both_eras() {
    let sdks = sdks_dir().display().to_string();
    for (mode, version) in [("v1", "2025-11-25"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")] {
        let stage = quick_stage();
        let run = stage.world.run_as(&node(), [&script("workflow.mjs"), &sdks, PROGRAM, mode]);
        assert_eq!(run.exit, Some(0), "{run:?}");
        assert_workflow_done(&run.json(), version);
    }
}

#[test]
fn the_inspector_reports_no_problem_with_the_tools() {
    let inspector = sdks_dir().join("node_modules/.bin/inspector").display().to_string();
    for era in ["legacy", "modern"] {
        let stage = quick_stage();
        let words = [
            &inspector,
            "--cli",
            "--method",
            "tools/list",
            "--strict",
            "--protocol-era",
            era,
            PROGRAM,
            "serve",
        ];
        let run = stage.world.run_as(&node(), words);
        assert_eq!(run.exit, Some(0), "{run:?}");
        assert_eq!(run.document()["tools"].as_array().unwrap().len(), 15);
        // It tells errors and warnings there, and nothing where there are none.
        assert!(!run.stderr.contains("Error") && !run.stderr.contains("arning"), "{}", run.stderr);
    }
}
