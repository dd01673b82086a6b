//! The official MCP conformance suite against the HTTP transport, once per protocol revision.
//!
//! The server is the program built with the suite's fixtures in front of the real tools. Its long-running tools are tasks
//! of the real registry, run by an agent that obeys the task text. Every finding must be in the baseline with the reason
//! why it does not apply to us, and every baseline entry must be found.

#![expect(clippy::disallowed_methods, reason = "the suite is an external program")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use delegator_testkit::generated::workspace;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, V2025_06, text};
use crate::http_client::HttpServer;

const SUITE: &str = ".tools/conformance-0.2.0-alpha.12/node_modules";
/// An agent for the task texts `sleep 2 word`, `say word` and `fail`.
const COMMANDED_AGENT: &str = r#"
read -r verb word rest
echo '{"type":"thread.started","thread_id":"t"}'
echo '{"type":"turn.started"}'
case $verb in
  sleep) sleep "$word"; word=$rest ;;
  fail) echo '{"type":"turn.failed","error":{"message":"it failed"}}'; exit 1 ;;
esac
echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"agent_message\",\"text\":\"$word\"}}"
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
"#;

/// Failed checks and their messages, by scenario and check id.
type Findings = BTreeMap<(String, String), Value>;

/// Builds the program with fixtures into the target directory of the program under test, unless it was built with the tests.
/// `--workspace` selects the same features of the dependencies as a run of all tests does, so that none is built again.
fn server_with_fixtures() -> PathBuf {
    let folder = Path::new(PROGRAM).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    // These describe the package of this test. Build scripts that read them would run again, and much would be compiled again.
    for (name, _) in std::env::vars_os().filter(|(name, _)| describes_package(&name.to_string_lossy())) {
        cargo.env_remove(name);
    }
    let built = cargo
        .args([
            "build",
            "--quiet",
            "--locked",
            "--workspace",
            "--example",
            "conformance-server",
            "--target-dir",
        ])
        .arg(folder.parent().unwrap())
        .current_dir(workspace())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    folder.join("examples/conformance-server")
}

fn describes_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_NAME", "CARGO_BIN_", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"]
        .iter()
        .any(|start| variable.starts_with(start))
}

fn stage() -> Stage {
    Stage::with_shell_agent(&server_with_fixtures().display().to_string(), COMMANDED_AGENT)
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "16")
}

/// Runs the checks of a revision; returns the failed ones, and the number of passed ones.
fn findings(revision: &str) -> (Findings, usize) {
    let suite = workspace().join(SUITE);
    assert!(suite.is_dir(), "the conformance suite is missing: run scripts/install-conformance");
    let stage = stage();
    let server = HttpServer::start(&stage);
    let results = stage.root().join("results");
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/conformance");
    let ran = Command::new(suite.join(".bin/node"))
        .arg("--import")
        .arg(dir.join("with-token.mjs"))
        .arg(suite.join("@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--requirements", revision, "--url"])
        .arg(format!("http://127.0.0.1:{}/mcp", server.port))
        .arg("--output-dir")
        .arg(&results)
        .env("CONFORMANCE_TOKEN", &server.token)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    stage.run_json(&["cancel", "--all"]);
    let mut found = Findings::new();
    let mut passed = 0;
    for entry in std::fs::read_dir(&results).unwrap_or_else(|error| panic!("{error}: {ran:?}")).flatten() {
        let checks = std::fs::read(entry.path().join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
        // server-<scenario>-<year>-<month>-<day>T<hour>-<minute>-<second>-<millisecond>Z
        let name = entry.file_name().to_string_lossy().into_owned();
        let scenario = name.strip_prefix("server-").unwrap().rsplitn(7, '-').nth(6).unwrap().to_owned();
        for check in checks {
            match check["status"].as_str().unwrap() {
                "SUCCESS" => passed += 1,
                "FAILURE" | "WARNING" => {
                    let id = check["id"].as_str().unwrap().to_owned();
                    found.insert((scenario.clone(), id), check["errorMessage"].clone());
                }
                _ => {}
            }
        }
    }
    (found, passed)
}

fn baseline(revision: &str) -> BTreeSet<(String, String)> {
    let entries: Vec<Value> = serde_json::from_str(include_str!("conformance/baseline.json")).unwrap();
    let word = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    assert!(entries.iter().all(|entry| word(entry, "why").len() > 20), "a baseline entry has no reason");
    let ours = entries.iter().filter(|entry| entry["revision"] == revision);
    ours.map(|entry| (word(entry, "scenario"), word(entry, "check"))).collect()
}

/// The findings equal the baseline, and at least this many checks passed.
fn assert_passes(revision: &str, at_least: usize) {
    let (found, passed) = findings(revision);
    let names: BTreeSet<_> = found.keys().cloned().collect();
    assert_eq!(names, baseline(revision), "{found:#?}");
    assert!(passed >= at_least, "only {passed} checks passed");
}

#[test]
fn revision_2025_11_25_passes_the_suite() {
    assert_passes("2025-11-25", 83);
}

#[test]
fn revision_2026_07_28_passes_the_suite() {
    assert_passes("2026-07-28", 190);
}

/// A handler that panics gets an error response, stdout carries only messages, and the server continues.
#[test]
fn a_panicking_handler_is_an_error_response_and_the_server_continues() {
    let stage = stage();
    let mut client = Client::connect(&stage, V2025_06);
    for _ in 0..3 {
        let broken = client.call("test_panic", json!({}));
        assert_eq!(broken["isError"], true, "{broken}");
        assert!(text(&broken).contains("INTERNAL"), "{broken}");
        assert_eq!(client.envelope("_codex_local_status", json!({}))["status"], "ok");
    }
    // The client panics on any line that is not a message.
    assert_eq!(client.close().0, Some(0));
}
