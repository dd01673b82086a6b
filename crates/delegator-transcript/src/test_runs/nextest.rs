//! Parses `cargo nextest run`: one `Summary` line, followed by every failed test.
//!
//! Nextest counts ignored tests and tests excluded by a filter alike as skipped.

use super::figures::{Figures, leading_number};
use super::results::{Output, TestCounts};

pub(super) fn is_summary(line: &str) -> bool {
    figures(line).is_some()
}

/// `     Summary [   0.329s] 9 tests run: 6 passed (1 slow), 3 failed, 1 skipped`
fn figures(line: &str) -> Option<(u64, &str)> {
    let rest = line.trim_start_matches(' ').strip_prefix("Summary [")?;
    let (_, rest) = rest.split_once("] ")?;
    let (run, rest) = leading_number(rest)?;
    // `3/9 tests run`: the run stopped early.
    let rest = rest.strip_prefix('/').and_then(leading_number).map_or(rest, |(_, rest)| rest);
    let figures = rest.strip_prefix(" tests run: ").or_else(|| rest.strip_prefix(" test run: "))?;
    Some((run, figures))
}

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut has_summary = false;
    for line in output.lines() {
        if let Some((run, figures)) = figures(line) {
            has_summary = true;
            if run > 0 {
                add_counts(&mut counts, figures);
            }
        } else if let Some((status, name)) = parse_progress(line) {
            match status {
                "PASS" => counts.add_passed_test(name),
                _ if has_summary && is_failure(status) => counts.failed_tests.add(name),
                _ => {}
            }
        }
    }
    has_summary.then_some(counts)
}

fn add_counts(counts: &mut TestCounts, figures: &str) {
    // `6 passed (1 slow, 2 flaky), 3 failed`: commas in brackets do not separate counts.
    let mut plain = String::with_capacity(figures.len());
    let mut is_inside = false;
    for character in figures.chars() {
        match character {
            '(' => is_inside = true,
            ')' => is_inside = false,
            _ if !is_inside => plain.push(character),
            _ => {}
        }
    }
    let figures = Figures::counted(&plain, ',').unwrap_or_default();
    let failed = figures.sum(&["failed", "timed out", "exec failed"]);
    counts.add(figures.sum(&["passed"]), failed, figures.sum(&["skipped"]));
}

/// `        FAIL [   0.166s] (4/9) alpha tests::deep::fails_too`
fn parse_progress(line: &str) -> Option<(&str, &str)> {
    let (status, rest) = line.trim_start().split_once(" [")?;
    let is_status = status.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || " -/".contains(c));
    let (time, name) = rest.split_once("] ")?;
    let name = name.trim_start();
    let name = match name.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        Some((position, name)) if position.contains('/') => name.trim_start(),
        _ => name,
    };
    (is_status && time.ends_with('s') && !name.is_empty()).then_some((status, name))
}

fn is_failure(status: &str) -> bool {
    let word = status.rsplit(' ').next().unwrap_or_default();
    !(status.starts_with("FLAKY") || matches!(word, "PASS" | "SLOW" | "LEAK" | "SKIP"))
}
