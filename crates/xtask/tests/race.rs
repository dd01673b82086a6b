//! The race itself, offline, with a participant whose results are known.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]
#![expect(clippy::disallowed_methods, reason = "starts the race as a developer does")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn race(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).arg("race").args(args).output().unwrap()
}

fn fake_server() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_server.py").display().to_string()
}

#[test]
fn every_metric_of_a_working_participant_is_measured() {
    let program = format!("fake={}", fake_server());
    let output = race(&["--offline", "--rounds", "1", "--program", &program, "--json"]);
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    let entries = results["entries"].as_array().unwrap();
    let fake = entries.iter().find(|entry| entry["name"] == "fake").unwrap();
    assert_eq!((&fake["version"], &fake["tools"]), (&"1.2.3".into(), &2.into()));
    let outcomes = fake["outcomes"].as_object().unwrap();
    let unmeasured: Vec<&str> = outcomes
        .iter()
        .filter(|(_, outcome)| !outcome["median"]["value"].is_number())
        .map(|(metric, _)| metric.as_str())
        .collect();
    // The tokenizer comes from a registry.
    assert_eq!((outcomes.len(), unmeasured), (17, vec!["tool_tokens"]), "{fake:#}");
    assert_eq!(outcomes["processes_left"]["median"]["value"], 0.0);
    assert_eq!(outcomes["results_lost"]["median"]["value"], 0.0);
    let peers: Vec<&Value> = entries.iter().filter(|entry| entry["name"] != "fake").collect();
    assert!(peers.len() >= 10);
    for peer in peers {
        assert_eq!(peer["problem"], "not installed: the race runs offline");
    }
}

#[test]
fn unknown_participants_and_programs_are_errors() {
    let program = format!("fake={}", fake_server());
    let output = race(&["--offline", "--program", &program, "--only", "other"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown participant other; known"));
    let output = race(&["--offline", "--program", "fake=/no/such/program"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("fake=/no/such/program is not LABEL=PATH"));
}
