//! Parses `vitest`: the line `Tests  2 failed | 3 passed (5)`; ` FAIL  file > name` for each failure, with
//! only the file if it does not load.

use super::figures::Figures;
use super::results::{Output, TestCounts};

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut broken = 0_u64;
    let mut has_summary = false;
    for line in output.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("FAIL ") {
            // `broken.test.js [ broken.test.js ]`
            let file = name.strip_suffix(" ]").and_then(|name| name.split_once(" [ "));
            let known = counts.failed_tests.0.len();
            counts.failed_tests.add(file.map_or(name, |(file, _)| file));
            broken += u64::from(file.is_some() && counts.failed_tests.0.len() > known);
        } else if let Some((passed, failed, skipped)) = figures(line) {
            counts.add(passed, failed, skipped);
            has_summary = true;
        }
    }
    counts.add(0, broken, 0);
    has_summary.then_some(counts)
}

fn figures(line: &str) -> Option<(u64, u64, u64)> {
    let figures = line.strip_prefix("Tests ")?.trim();
    if figures == "no tests" {
        return Some((0, 0, 0));
    }
    let (figures, total) = figures.rsplit_once(" (")?;
    total.strip_suffix(')')?.parse::<u64>().ok()?;
    let figures = Figures::counted(figures, '|')?;
    let is_known =
        figures.all(|name| matches!(name, "passed" | "failed" | "skipped" | "todo" | "expected fail"));
    let (passed, skipped) = (figures.sum(&["passed", "expected fail"]), figures.sum(&["skipped", "todo"]));
    is_known.then(|| (passed, figures.sum(&["failed"]), skipped))
}
