//! Parses `pytest`: the last line has the counts, with `===` or, in quiet mode, without; the short summary
//! names failed tests.
//!
//! Expected failures count as skipped and unexpected passes as passed, as in pytest's own JUnit report.

use super::figures::Figures;
use super::results::{Output, TestCounts, TestNames};

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let mut sessions = 0;
    let mut summary: Option<TestCounts> = None;
    let (mut from_summary, mut from_progress) = (TestNames::default(), TestNames::default());
    let mut passed = TestCounts::default();
    for line in output.lines() {
        if line.starts_with("===") && line.contains(" test session starts ") {
            sessions += 1;
        } else if line.starts_with("===") && line.contains(" short test summary info ") {
            // An earlier section of this name was printed by a test.
            if sessions < 2 {
                from_summary = TestNames::default();
            }
        } else if let Some((passed, failed, skipped)) = figures(line) {
            // A session has one last line; several sessions in one output are summed.
            let summary = summary.get_or_insert_default();
            if sessions < 2 {
                *summary = TestCounts::default();
            }
            summary.add(passed, failed, skipped);
        } else if let Some(name) = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")) {
            if is_test_id(name) {
                from_summary.add(name.split(" - ").next().unwrap_or(name));
            }
        } else if let Some((name, has_passed)) = parse_verbose(line) {
            if has_passed {
                passed.add_passed_test(name);
            } else {
                from_progress.add(name);
            }
        }
    }
    let mut counts = summary?;
    if counts.failed > 0 {
        counts.failed_tests = if from_summary.0.is_empty() { from_progress } else { from_summary };
    }
    counts.passed_tests = passed.passed_tests;
    Some(counts)
}

/// `==== 2 failed, 7 passed, 1 skipped, 1 error in 0.05s =====`
fn figures(line: &str) -> Option<(u64, u64, u64)> {
    // Checked first, because every line passes through here.
    line.bytes().next().filter(|first| *first == b'=' || first.is_ascii_digit())?;
    let line = line.trim_matches('=').trim();
    let (figures, time) = line.rsplit_once(" in ")?;
    let is_time = time.split(' ').next()?.strip_suffix('s')?.parse::<f64>().is_ok();
    if !is_time || !line.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let figures = Figures::counted(figures, ',').filter(|figures| figures.all(is_count_name))?;
    let (passed, failed) = (figures.sum(&["passed", "xpassed"]), figures.sum(&["failed", "error", "errors"]));
    Some((passed, failed, figures.sum(&["skipped", "xfailed"])))
}

fn is_count_name(name: &str) -> bool {
    let result = name.strip_prefix("subtests ").unwrap_or(name);
    matches!(result, "passed" | "failed")
        || matches!(name, "xpassed" | "error" | "errors" | "skipped" | "xfailed")
        || matches!(name, "deselected" | "warning" | "warnings" | "rerun")
}

/// Whether this can be the id of a test or a test file; captured log lines are not.
fn is_test_id(name: &str) -> bool {
    !name.starts_with(' ') && (name.contains("::") || name.contains(".py"))
}

/// `tests/test_a.py::test_x PASSED   [ 50%]`, `[gw0] [ 50%] FAILED tests/test_a.py::test_x`
fn parse_verbose(line: &str) -> Option<(&str, bool)> {
    if line.starts_with("[gw") {
        let (_, rest) = line.split_once("%] ")?;
        let (word, name) = rest.split_once(' ')?;
        return Some((name.trim_end(), has_passed(word)?)).filter(|(name, _)| name.contains("::"));
    }
    let line = match line.strip_suffix("%]") {
        Some(line) => line.rsplit_once('[')?.0.trim_end(),
        None => line,
    };
    let (name, word) = line.rsplit_once(' ')?;
    Some((name, has_passed(word)?)).filter(|(name, _)| name.contains(".py::"))
}

fn has_passed(word: &str) -> Option<bool> {
    match word {
        "PASSED" => Some(true),
        "FAILED" | "ERROR" => Some(false),
        _ => None,
    }
}
