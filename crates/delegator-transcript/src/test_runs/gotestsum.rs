//! Parses `gotestsum`: the line `DONE 10 tests, 1 skipped, 3 failures, 1 error in 0.3s`, with any output
//! format above it.

use super::figures::Figures;
use super::results::{Output, TestCounts};

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    for line in output.lines() {
        if let Some(test) = line.strip_prefix("=== FAIL: ") {
            let test = test.rsplit_once(" (").map_or(test, |(name, _)| name);
            // The package comes first; a test name has no space.
            counts.failed_tests.add(test.split_once(' ').map_or(test, |(_, name)| name));
        } else if let Some((total, failed, skipped, errors)) = figures(line) {
            counts.add_total(total, failed, skipped);
            counts.add(0, errors, 0);
        }
    }
    Some(counts)
}

fn figures(line: &str) -> Option<(u64, u64, u64, u64)> {
    let (figures, _) = line.strip_prefix("DONE ")?.rsplit_once(" in ")?;
    let figures = Figures::counted(figures, ',').filter(|figures| figures.all(is_count_name))?;
    let (failed, errors) = (figures.sum(&["failure", "failures"]), figures.sum(&["error", "errors"]));
    Some((figures.find(&["test", "tests"])?, failed, figures.sum(&["skipped"]), errors))
}

fn is_count_name(name: &str) -> bool {
    matches!(
        name,
        "test" | "tests" | "skipped" | "failure" | "failures" | "error" | "errors" | "run" | "runs"
    )
}
