//! Parses `phpunit`: `OK (2 tests, 2 assertions)`, or `Tests: 11, Assertions: 7, …` with the counts of
//! problems.

use super::results::{Figures, Output, RunCounts, leading_number, numbered};

pub(super) fn parse(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
    let mut is_list = false;
    for line in output.lines() {
        if let Some(total) = parse_ok(line) {
            counts.add(total, 0, 0);
        } else if let Some((total, failed, skipped)) = figures(line) {
            counts.add_total(total, failed, skipped);
        } else if line.starts_with("There was ") || line.starts_with("There were ") {
            is_list =
                [" error:", " errors:", " failure:", " failures:"].iter().any(|end| line.ends_with(end));
        } else if let Some(name) = numbered(line).filter(|name| is_list && name.contains("::")) {
            counts.failed_tests.add(name);
        }
    }
    Some(counts)
}

fn parse_ok(line: &str) -> Option<u64> {
    let (total, rest) = leading_number(line.strip_prefix("OK (")?)?;
    let is_ours = rest.starts_with(" test") && rest.contains(" assertion");
    is_ours.then_some(total)
}

fn figures(line: &str) -> Option<(u64, u64, u64)> {
    line.strip_prefix("Tests: ")?;
    let figures = Figures::named(line, ',', ':');
    figures.find(&["assertions"])?;
    let (failed, skipped) = (figures.sum(&["errors", "failures"]), figures.sum(&["skipped", "incomplete"]));
    Some((figures.find(&["tests"])?, failed, skipped))
}
