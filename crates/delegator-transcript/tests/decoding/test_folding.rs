//! Several test runs in one session: which of them count in the end.

use delegator_transcript::{FoldOptions, LineLimits, Report, Summarizer, TestReport};
use serde_json::json;

/// A session that runs these commands, each with its output and exit code.
fn session(commands: &[(&str, &str, i32)]) -> Report {
    let options = FoldOptions { workdir: Some("/home/dev/shop".into()), ..FoldOptions::default() };
    let mut summarizer = Summarizer::new(options, LineLimits::STANDARD);
    summarizer.push(b"{\"type\":\"turn.started\"}\n");
    for (index, (command, output, exit_code)) in commands.iter().enumerate() {
        let status = if *exit_code == 0 { "completed" } else { "failed" };
        let item = json!({"id": format!("item_{index}"), "type": "command_execution",
            "command": format!("/bin/bash -lc '{command}'"), "aggregated_output": output,
            "exit_code": exit_code, "status": status});
        summarizer.push(json!({"type": "item.completed", "item": item}).to_string().as_bytes());
        summarizer.push(b"\n");
    }
    summarizer.finish()
}

fn tests(commands: &[(&str, &str, i32)]) -> TestReport {
    session(commands).tests.expect("tests ran")
}

fn sums(report: &TestReport) -> (u64, u64, u64) {
    (report.passed, report.failed, report.skipped)
}

/// libtest's output for tests with these names.
fn cargo(passed: &[&str], failed: &[&str]) -> String {
    let mut text = format!("\nrunning {} tests\n", passed.len() + failed.len());
    passed.iter().for_each(|name| text.push_str(&format!("test {name} ... ok\n")));
    failed.iter().for_each(|name| text.push_str(&format!("test {name} ... FAILED\n")));
    let verdict = if failed.is_empty() { "ok" } else { "FAILED" };
    let (passed, failed) = (passed.len(), failed.len());
    text.push_str(&format!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
    ));
    text
}

fn pytest(figures: &str, failed: &[&str]) -> String {
    let names: String = failed.iter().map(|name| format!("FAILED {name} - assert 1 == 2\n")).collect();
    format!("=== short test summary info ===\n{names}=== {figures} in 0.05s ===\n")
}

#[test]
fn a_suite_that_failed_and_was_fixed_has_passed() {
    let failing = cargo(&["a", "b"], &["c"]);
    let passing = cargo(&["a", "b", "c"], &[]);
    for (first, last) in [
        ("cargo test", "cargo test"),
        ("cargo test", "cd /home/dev/shop && RUST_BACKTRACE=1 cargo test -q 2>&1 | grep -v warning"),
        ("timeout 60 cargo test --color always", "cargo test -- --nocapture > log; cargo test"),
        ("cargo test --no-fail-fast", "cargo fmt && cargo test --workspace"),
    ] {
        let report = tests(&[(first, &failing, 101), (last, &passing, 0)]);
        assert_eq!(sums(&report), (3, 0, 0), "{first}, then {last}");
        assert!(report.failed_tests.is_empty());
        assert_eq!(report.runs.iter().map(|run| run.superseded).collect::<Vec<_>>(), [true, false]);
    }
}

#[test]
fn a_suite_that_passed_and_was_broken_has_failed() {
    let report = tests(&[
        ("pytest", &pytest("3 passed", &[]), 0),
        ("pytest -x", &pytest("1 failed, 2 passed", &["t.py::x"]), 1),
    ]);
    assert_eq!(
        (sums(&report), report.failed_tests.as_slice()),
        ((2, 1, 0), ["t.py::x".to_owned()].as_slice())
    );
}

#[test]
fn a_suite_that_no_longer_builds_does_not_pass() {
    let compile_error = "error[E0308]: mismatched types\nerror: could not compile `shop`\n";
    let report = tests(&[("cargo test", &cargo(&["a"], &[]), 0), ("cargo test", compile_error, 101)]);
    assert_eq!((sums(&report), report.ended_badly, report.incomplete), ((0, 0, 0), true, true));
    // No test ran, so there are no results.
    assert_eq!(session(&[("cargo test", compile_error, 101)]).tests, None);
    // Another command that fails says nothing about the tests.
    let report = tests(&[("cargo test", &cargo(&["a"], &[]), 0), ("cargo build", compile_error, 101)]);
    assert_eq!((sums(&report), report.ended_badly), ((1, 0, 0), false));
}

#[test]
fn a_wider_run_replaces_a_narrower_one() {
    let report = tests(&[
        ("pytest tests/a.py", &pytest("1 failed, 2 passed", &["tests/a.py::x"]), 1),
        ("python -m pytest -q", &pytest("9 passed", &[]), 0),
    ]);
    assert_eq!(sums(&report), (9, 0, 0));
    let report = tests(&[
        ("npx jest cart", "Tests:       1 failed, 2 passed, 3 total\n", 1),
        ("npm test", "Tests:       20 passed, 20 total\n", 0),
    ]);
    assert_eq!(sums(&report), (20, 0, 0));
}

#[test]
fn a_narrower_run_only_updates_the_tests_it_names() {
    let all = cargo(&["a::one", "a::two"], &["b::three", "b::four"]);
    let report = tests(&[("cargo test", &all, 101), ("cargo test three", &cargo(&["b::three"], &[]), 0)]);
    assert_eq!(
        (sums(&report), report.failed_tests.as_slice()),
        ((3, 1, 0), ["b::four".to_owned()].as_slice())
    );
    assert!(report.runs[1].superseded && !report.runs[0].superseded);
    // The listed run keeps its original counts.
    assert_eq!((report.runs[0].passed, report.runs[0].failed), (2, 2));
    // A test that passed fails now.
    let report = tests(&[("cargo test", &all, 101), ("cargo test two", &cargo(&[], &["a::two"]), 101)]);
    assert_eq!((sums(&report), report.failed_tests.len()), ((1, 3, 0), 3));
    // Selected by its exact name, with a runner that does not print the names of passed tests.
    let names = ["t.py::x", "t.py::y"];
    let first = pytest("2 failed, 5 passed", &names);
    let report = tests(&[("pytest", &first, 1), ("pytest t.py::x", &pytest("1 passed", &[]), 0)]);
    assert_eq!(
        (sums(&report), report.failed_tests.as_slice()),
        ((6, 1, 0), ["t.py::y".to_owned()].as_slice())
    );
    // A selector that is a file does not name a test.
    let report = tests(&[("pytest", &first, 1), ("pytest t.py", &pytest("2 passed", &[]), 0)]);
    assert_eq!(sums(&report), (5, 2, 0));
}

#[test]
fn different_tests_are_summed() {
    let report = tests(&[
        ("cargo test -p till", &cargo(&["a"], &["b"]), 101),
        ("cargo test -p cart", &cargo(&["a", "c"], &[]), 0),
        ("cd web && npm test", "Tests:       1 skipped, 4 passed, 5 total\n", 0),
        ("cd api && npm test", "Tests:       2 passed, 2 total\n", 0),
    ]);
    assert_eq!(sums(&report), (9, 1, 1));
    assert_eq!(report.runs.len(), 4);
}

#[test]
fn runners_of_the_same_tests_replace_each_other() {
    let nextest = "        PASS [   0.1s] (1/2) shop a::one\n     Summary [   0.1s] 2 tests run: 1 passed, 1 failed, 0 skipped\n        FAIL [   0.1s] (2/2) shop a::two\n";
    let report =
        tests(&[("cargo nextest run", nextest, 100), ("cargo test", &cargo(&["a::one", "a::two"], &[]), 0)]);
    assert_eq!(sums(&report), (2, 0, 0));
    let report =
        tests(&[("cargo nextest run", nextest, 100), ("cargo test two", &cargo(&["a::two"], &[]), 0)]);
    assert_eq!((sums(&report), report.failed_tests.len()), ((2, 0, 0), 0));
    // Nextest does not run doctests.
    let report = tests(&[
        ("cargo nextest run", nextest, 100),
        ("cargo test --doc", &cargo(&["src/lib.rs - add (line 3)"], &[]), 0),
    ]);
    assert_eq!(sums(&report), (2, 1, 0));
}

#[test]
fn passing_counts_with_a_bad_exit_code_are_not_plain_success() {
    let report = tests(&[("cargo test", &cargo(&["a"], &[]), 101)]);
    assert_eq!((sums(&report), report.ended_badly, report.runs[0].exit_code), ((1, 0, 0), true, Some(101)));
    let report = tests(&[("cargo test", &cargo(&["a"], &["b"]), 101)]);
    assert!(!report.ended_badly, "a failed test is reason enough");
}

#[test]
fn a_declined_command_does_not_count() {
    let line = json!({"type": "item.completed", "item": {"id": "item_0", "type": "command_execution",
        "command": "cargo test", "aggregated_output": cargo(&["a"], &[]), "exit_code": null, "status": "declined"}});
    let mut summarizer = Summarizer::default();
    summarizer.push(format!("{{\"type\":\"turn.started\"}}\n{line}\n").as_bytes());
    assert_eq!(summarizer.finish().tests, None);
}

#[test]
fn lists_are_bounded_and_the_rest_is_counted() {
    let names: Vec<String> = (0..1_000).map(|n| format!("{}::{n}", "x".repeat(n))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let report = tests(&[("cargo test", &cargo(&[], &names), 101)]);
    assert_eq!((report.failed, report.failed_tests.len(), report.failed_tests_not_listed), (1_000, 100, 900));
    assert!(report.failed_tests.iter().all(|name| name.len() <= 300));
    // Many different commands: the sums stay exact, the list has the most recent.
    let commands: Vec<String> = (0..300).map(|n| format!("cargo test -p crate{n}")).collect();
    let output = cargo(&["a", "b"], &[]);
    let session: Vec<(&str, &str, i32)> =
        commands.iter().map(|command| (command.as_str(), output.as_str(), 0)).collect();
    let report = tests(&session);
    assert_eq!((sums(&report), report.runs.len()), ((600, 0, 0), 32));
    assert_eq!(report.runs.last().map(|run| run.command.as_str()), Some("cargo test -p crate299"));
}

#[test]
fn one_runners_failures_explain_the_exit_code_of_a_command_with_two() {
    let both = format!("{}{}", cargo(&["a", "b"], &[]), pytest("1 failed, 3 passed", &["t.py::test_x"]));
    let report = tests(&[("cargo test; pytest", &both, 1)]);
    assert_eq!((sums(&report), report.ended_badly), ((5, 1, 0), false));
    let fine = format!("{}{}", cargo(&["a", "b"], &[]), pytest("3 passed", &[]));
    let report = tests(&[("cargo test; pytest", &fine, 1)]);
    assert_eq!(
        (sums(&report), report.ended_badly),
        ((5, 0, 0), true),
        "no failed test explains the exit code"
    );
}
