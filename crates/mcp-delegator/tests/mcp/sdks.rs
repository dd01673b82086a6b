//! Third-party clients over stdio: the official SDKs run the whole workflow in every protocol version they support, and
//! the MCP Inspector checks the tool schemas.

use std::path::PathBuf;

use delegator_testkit::generated::workspace;
use serde_json::Value;

use crate::PROGRAM;
use crate::client::quick_stage;

fn sdks_dir() -> PathBuf {
    let dir = workspace().join(".tools/sdks-1");
    assert!(dir.join("complete").exists(), "the SDKs are missing: run scripts/install-sdks");
    dir
}

/// The Node of the conformance suite; the Inspector needs a recent one.
fn node() -> PathBuf {
    let node = workspace().join(".tools/conformance-0.2.0-alpha.12/node_modules/.bin/node");
    assert!(node.exists(), "Node is missing: run scripts/install-conformance");
    node
}

fn script(name: &str) -> String {
    format!("{}/tests/mcp/clients/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Checks the report of a client that ran the workflow.
fn assert_workflow_done(report: &Value, version: &str) {
    assert_eq!(report["version"], version, "{report}");
    assert_eq!(report["tools"], 15, "{report}");
    assert!(report["waited"].as_str().unwrap().contains("completed"), "{report}");
    assert_eq!(report["final_message"], "All done.", "{report}");
    assert_eq!(report["refused"], true, "{report}");
    assert!(report["progress"].as_u64() >= Some(1), "{report}");
    assert!(report["resources"].as_u64() >= Some(7), "{report}");
    assert_eq!(report["prompts"], 2, "{report}");
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
        let args = [
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
        let run = stage.world.run_as(&node(), args);
        assert_eq!(run.exit, Some(0), "{run:?}");
        assert_eq!(run.document()["tools"].as_array().unwrap().len(), 15);
        // The Inspector prints errors and warnings to stderr.
        assert!(!run.stderr.contains("Error") && !run.stderr.contains("arning"), "{}", run.stderr);
    }
}
