//! Arbitrary and hostile outputs: no panic, and bounded results.

use std::path::Path;

use delegator_transcript::{Summarizer, TestReport};
use proptest::prelude::*;
use serde_json::json;

fn tests(command: &str, output: &str) -> Option<TestReport> {
    let item = json!({"id": "item_0", "type": "command_execution", "command": command,
        "aggregated_output": output, "exit_code": 1, "status": "failed"});
    let mut summarizer = Summarizer::default();
    summarizer.push(b"{\"type\":\"turn.started\"}\n");
    summarizer.push(json!({"type": "item.completed", "item": item}).to_string().as_bytes());
    summarizer.push(b"\n");
    summarizer.finish().tests
}

/// All recorded lines.
fn recorded_lines() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/test_runs");
    let mut lines = Vec::new();
    for runner in
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        let files = std::fs::read_dir(runner).unwrap().map(|entry| entry.unwrap().path());
        for file in files.filter(|path| path.extension().is_some_and(|ending| ending == "txt")) {
            lines.extend(std::fs::read_to_string(file).unwrap().lines().map(str::to_owned));
        }
    }
    lines.sort();
    lines.dedup();
    lines
}

fn is_bounded(report: Option<TestReport>) -> bool {
    report.is_none_or(|tests| {
        let listed = tests.failed_tests.len();
        let names_are_short = tests.failed_tests.iter().all(|name| !name.is_empty() && name.len() <= 300);
        listed <= 100 && names_are_short && tests.runs.len() <= 32
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn recorded_lines_in_any_order_do_not_panic(picks in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..80)) {
        let lines = recorded_lines();
        let mut output = String::new();
        for (pick, cut) in picks {
            let line = pick.get(&lines);
            // Truncated, repeated, or whole.
            match cut {
                0..64 => output.push_str(&line[line.ceil_char_boundary(usize::from(cut).min(line.len()))..]),
                64..96 => output.push_str(&line[..line.floor_char_boundary(usize::from(cut - 64))]),
                96..112 => output.push_str(&line.repeat(3)),
                _ => output.push_str(line),
            }
            output.push('\n');
        }
        prop_assert!(is_bounded(tests("make test", &output)));
    }

    #[test]
    fn any_command_and_any_text_do_not_panic(command in any::<String>(), before in any::<String>(), after in any::<String>()) {
        let output = format!("{before}\n3 passed in 0.1s\n{after}");
        prop_assert!(is_bounded(tests(&command, &output)));
        prop_assert!(is_bounded(tests("pytest", &output)));
    }

    #[test]
    fn numbers_of_any_size_do_not_panic(number in "[0-9]{1,40}") {
        let output = format!(
            "test result: ok. {number} passed; {number} failed; {number} ignored; 0 measured; 0 filtered out\n\
             === {number} passed, {number} failed in 0.1s ===\nTests:  {number} passed, {number} total\n\
             Tests run: {number}, Failures: {number}, Errors: {number}, Skipped: 1\nRan {number} tests in 0.1s\n\nOK\n\
             {number} examples, {number} failures\n{number}% tests passed, {number} tests failed out of {number}\n\
             DONE {number} tests, {number} failures in 1s\n  {number} passing (1s)\n  {number} failing\n"
        ).repeat(3);
        prop_assert!(is_bounded(tests("make test", &output)));
    }
}

#[test]
fn a_megabyte_of_any_one_line_does_not_panic() {
    let mut lines = recorded_lines();
    let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert!(is_bounded(tests("make test", &whole.repeat((1 << 20) / whole.len() + 1))));
    lines = lines.into_iter().step_by(300).collect();
    lines.extend(
        ["\u{1b}[", "(((((", "\r\r\r", "{\"Action\":", "  1) a", "FAIL\t", "not ok 1 - a"].map(str::to_owned),
    );
    for line in lines {
        let output =
            format!("--- FAIL: a\n3 passed\n{}", format!("{line}\n").repeat((1 << 18) / (line.len() + 1)));
        assert!(is_bounded(tests("make test", &output)), "{line}");
    }
}
