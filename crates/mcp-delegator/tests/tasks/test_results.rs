//! Test results of a task, from the output of test commands to `wait`, `results` and `events summarize`.

use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;

/// A `cargo` that fails one of three tests until the file `fixed` exists.
const CARGO: &str = r#"#!/bin/sh
echo "   Compiling shop v0.1.0"
echo "    Finished \`test\` profile [unoptimized + debuginfo] target(s) in 0.10s"
echo
echo "running 4 tests"
echo "test cart::adds_up ... ok"
echo "test cart::is_empty ... ok"
echo "test cart::slow ... ignored"
if [ -e fixed ]; then verdict=ok; result="ok. 3 passed; 0"; else verdict=FAILED; result="FAILED. 2 passed; 1"; fi
echo "test till::gives_change ... $verdict"
[ "$verdict" = ok ] || printf '\nfailures:\n\nfailures:\n    till::gives_change\n'
echo
echo "test result: $result failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s"
[ "$verdict" = ok ]
"#;

fn submit_steps(steps: &[Value]) -> (Stage, String) {
    let stage = Stage::with_script(PROGRAM, successful_turn(steps));
    let id = stage.exec(&["--mode", "workspace-write"]);
    (stage, id)
}

fn write_cargo() -> Value {
    json!({"write_file": {"path": "cargo", "text": CARGO}})
}

fn run_cargo_test() -> Value {
    json!({"command": {"run": "chmod +x cargo && PATH=.:$PATH cargo test"}})
}

#[test]
fn a_suite_that_was_fixed_is_reported_as_passed() {
    let fix = json!({"write_file": {"path": "fixed", "text": ""}});
    let (stage, id) = submit_steps(&[write_cargo(), run_cargo_test(), fix, run_cargo_test()]);
    let expected = json!({"passed": 3, "failed": 0, "skipped": 1, "failed_tests": []});
    assert_eq!(stage.wait(&id)["data"]["metadata"]["test_results"], expected);
    let results = stage.run_json(&["local", "results", &id, "--envelope", "tool"]);
    assert_eq!(results["data"]["metadata"]["test_results"], expected);
    let read = stage.world.run(["local", "results", &id, "--format", "markdown"]);
    assert!(read.stdout.contains("tests: 3 passed, 0 failed, 1 skipped"), "{}", read.stdout);
}

#[test]
fn a_failing_suite_names_its_failed_tests() {
    let (stage, id) = submit_steps(&[write_cargo(), run_cargo_test()]);
    let data = stage.wait(&id)["data"].clone();
    let expected = json!({"passed": 2, "failed": 1, "skipped": 1, "failed_tests": ["till::gives_change"]});
    assert_eq!(data["metadata"]["test_results"], expected);
    let read = stage.world.run(["local", "results", &id, "--format", "markdown"]);
    assert!(read.stdout.contains("tests: 2 passed, 1 failed, 1 skipped"), "{}", read.stdout);
    assert!(read.stdout.contains("failed tests: till::gives_change"), "{}", read.stdout);
    // The stored events give the same result.
    let events = stage.task_dir(&id).join("events.jsonl");
    let summary = stage.run_json(&["events", "summarize", events.to_str().unwrap()]);
    assert_eq!(summary["data"]["test_results"], expected);
    assert_eq!(summary["data"]["test_runs"][0]["runner"], "cargo");
    let read = stage.world.run(["events", "summarize", events.to_str().unwrap(), "--format", "markdown"]);
    assert!(read.stdout.contains("2 passed, 1 failed, 1 skipped"), "{}", read.stdout);
}

#[test]
fn a_task_that_ran_no_tests_has_no_results() {
    let (stage, id) =
        submit_steps(&[json!({"command": {"run": "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'"}})]);
    let data = stage.wait(&id)["data"].clone();
    assert_eq!(data["state"], "completed");
    assert!(data["metadata"].get("test_results").is_none(), "{}", data["metadata"]);
}
