//! The recorded output of real runners, compared with the expected results beside it; see `test_runs/README.md`.

use std::path::{Path, PathBuf};

use delegator_transcript::{FoldOptions, LineLimits, Report, Summarizer};
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/test_runs")
}

/// The report of an agent that ran one command.
fn report(command: &str, output: &str, exit_code: i64, limits: LineLimits) -> Report {
    let status = if exit_code == 0 { "completed" } else { "failed" };
    let item = json!({"id": "item_0", "type": "command_execution", "command": command,
        "aggregated_output": output, "exit_code": exit_code, "status": status});
    let mut summarizer = Summarizer::new(FoldOptions::default(), limits);
    summarizer.push(b"{\"type\":\"turn.started\"}\n");
    summarizer.push(json!({"type": "item.completed", "item": item}).to_string().as_bytes());
    summarizer.push(b"\n");
    summarizer.finish()
}

fn cases() -> Vec<(String, String, Value)> {
    let mut cases = Vec::new();
    for runner in std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()) {
        if !runner.is_dir() {
            continue;
        }
        for truth in std::fs::read_dir(&runner).unwrap().map(|entry| entry.unwrap().path()) {
            if truth.extension().is_some_and(|ending| ending == "json") {
                let name = truth.strip_prefix(folder()).unwrap().with_extension("").display().to_string();
                let output = std::fs::read_to_string(truth.with_extension("txt")).unwrap();
                let truth = serde_json::from_str(&std::fs::read_to_string(&truth).unwrap()).unwrap();
                cases.push((name, output, truth));
            }
        }
    }
    cases.sort_by(|left, right| left.0.cmp(&right.0));
    assert!(cases.len() > 100, "only {} cases were found", cases.len());
    cases
}

/// The results in the form of the expected values.
fn test_results(report: &Report) -> Value {
    let counts = |tests: &delegator_transcript::TestReport| {
        json!({"passed": tests.passed, "failed": tests.failed, "skipped": tests.skipped,
            "failed_tests": tests.failed_tests, "incomplete": tests.incomplete})
    };
    report.tests.as_ref().map_or(Value::Null, counts)
}

/// The order of failures differs from run to run.
fn in_order(mut value: Value) -> Value {
    if let Some(names) = value.pointer_mut("/failed_tests").and_then(Value::as_array_mut) {
        names.sort_by_key(Value::to_string);
    }
    value
}

fn compare(what: &str, change: fn(&str) -> String) {
    let mut wrong = Vec::new();
    for (name, output, truth) in cases() {
        let command = truth["command"].as_str().unwrap();
        let exit_code = truth["exit_code"].as_i64().unwrap();
        let got = in_order(test_results(&report(command, &change(&output), exit_code, LineLimits::STANDARD)));
        let expected = in_order(truth["expected"].clone());
        for field in ["passed", "failed", "skipped", "failed_tests", "incomplete"] {
            if got[field] != expected[field] {
                wrong.push(format!("{name}: {field} is {} and should be {}", got[field], expected[field]));
            }
        }
    }
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn recorded_outputs_of_every_runner_are_parsed() {
    compare("as recorded", str::to_owned);
}

#[test]
fn carriage_returns_and_other_text_around_it_change_nothing() {
    compare("with carriage returns", |output| output.replace('\n', "\r\n"));
    compare("with other text", |output| {
        format!("> shop@1.0.0 test\n> make all\n\n{output}\nmake: Leaving directory 'x'\nDone in 3.21s.\n")
    });
}

#[test]
fn a_printed_log_is_not_a_test_run() {
    for (name, output, _) in cases() {
        for command in [
            "cat test.log",
            "/bin/bash -lc 'grep -n passed -r . | head -50'",
            "git log -3",
            "cd build && tail -100 log.txt",
            "sed -n 1,200p README.md; echo done",
        ] {
            let report = report(command, &output, 0, LineLimits::STANDARD);
            assert_eq!(report.tests, None, "{name} shown by {command}");
        }
    }
}

/// Output shortened by `tail` or `head` never gives higher counts. Excluded: a test that prints a fake summary, which
/// only preceding lines reveal, and unittest, which counts failing subtests and needs its reports to group them.
#[test]
fn truncated_output_never_increases_counts() {
    for (name, output, truth) in cases() {
        if name == "cargo/nocapture-forged" || name.starts_with("unittest/") {
            continue;
        }
        let command = format!("{} | tail -n 50", truth["command"].as_str().unwrap());
        let lines: Vec<&str> = output.lines().collect();
        for at in (0..lines.len()).step_by(1 + lines.len() / 12) {
            for part in [lines[..at].join("\n"), lines[at..].join("\n")] {
                let got = test_results(&report(&command, &part, 0, LineLimits::STANDARD));
                for figure in ["passed", "failed", "skipped"] {
                    let (got, whole) = (got[figure].as_u64(), truth["expected"][figure].as_u64());
                    assert!(
                        got.unwrap_or(0) <= whole.unwrap_or(0),
                        "{name} at line {at}: {figure} is {got:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_ends_of_an_over_long_line_are_read() {
    let noise = "test noise::number ... ok\n".repeat(60_000);
    let output = format!(
        "     Summary [   0.1s] 5 tests run: 4 passed, 1 failed, 0 skipped\n        FAIL [   0.1s] (1/5) shop a::b\n{noise}\
         ==== 1 failed, 2 passed in 0.06s ====\n"
    );
    let limits = LineLimits { whole: 1 << 20, head: 64 << 10, tail: 64 << 10 };
    let report = report("make test", &output, 1, limits);
    assert_eq!(report.counts.over_long, 1);
    let tests = report.tests.unwrap();
    assert_eq!((tests.passed, tests.failed), (6, 2));
    assert_eq!(tests.failed_tests, ["shop a::b"]);
    assert_eq!(tests.failed_tests_not_listed, 1);
}
