//! The official conformance suite against the HTTP face, one run for each revision of the protocol.
//!
//! The server is the program built with the suite's fixtures in front of the real tools. Its long-running tools are
//! tasks of the real registry, done by an agent that obeys. Whatever the suite finds has to be in the baseline, with the
//! reason why it cannot apply to us; and what stands there has to be found.

#![expect(clippy::disallowed_methods, reason = "the suite is somebody else's program")]

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
/// `sleep 2 word`, `say word` or `fail`.
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

/// What was not passed, by scenario and check, and what was said about it.
type Findings = BTreeMap<(String, String), Value>;

/// The program with fixtures, built beside the one under test unless it is up to date.
fn server_with_fixtures() -> PathBuf {
    let folder = Path::new(PROGRAM).parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--package", "mcp-delegator"])
        .args(["--features", "conformance-fixtures", "--bin", "conformance-server", "--target-dir"])
        .arg(folder.parent().unwrap())
        .current_dir(workspace())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    folder.join("conformance-server")
}

fn stage() -> Stage {
    Stage::with_shell_agent(&server_with_fixtures().display().to_string(), COMMANDED_AGENT)
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "16")
}

/// Runs what a revision requires, and says which checks of which scenarios were not passed, and how many there were.
fn findings(revision: &str) -> (Findings, usize) {
    let suite = workspace().join(SUITE);
    assert!(suite.is_dir(), "the suite is not there: run scripts/install-conformance");
    let stage = stage();
    let server = HttpServer::start(&stage);
    let results = stage.root().join("results");
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/conformance");
    let ran = Command::new(suite.join(".bin/node"))
        .arg("--import")
        .arg(here.join("with-token.mjs"))
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
    assert!(entries.iter().all(|entry| word(entry, "why").len() > 20), "an entry says why");
    let ours = entries.iter().filter(|entry| entry["revision"] == revision);
    ours.map(|entry| (word(entry, "scenario"), word(entry, "check"))).collect()
}

/// Nothing is found but what the baseline tells, all of that is found, and the suite did its work.
fn assert_passes(revision: &str, at_least: usize) {
    let (found, passed) = findings(revision);
    let names: BTreeSet<_> = found.keys().cloned().collect();
    assert_eq!(names, baseline(revision), "{found:#?}");
    assert!(passed >= at_least, "only {passed} checks were passed");
}

#[test]
fn revision_2025_11_25_passes_the_suite() {
    assert_passes("2025-11-25", 83);
}

#[test]
fn revision_2026_07_28_passes_the_suite() {
    assert_passes("2026-07-28", 190);
}

/// F28: a handler that breaks down is an answer, stdout stays clean, and the server lives on.
#[test]
fn a_panicking_handler_is_an_error_response_and_the_server_continues() {
    let stage = stage();
    let mut host = Client::connect(&stage, V2025_06);
    for _ in 0..3 {
        let broken = host.call("test_panic", json!({}));
        assert_eq!(broken["isError"], true, "{broken}");
        assert!(text(&broken).contains("INTERNAL"), "{broken}");
        assert_eq!(host.envelope("_codex_local_status", json!({}))["status"], "ok");
    }
    // Every line that came is a message; the host checks that.
    assert_eq!(host.close().0, Some(0));
}
