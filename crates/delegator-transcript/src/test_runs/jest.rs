//! Parses `jest`: the line `Tests: … total` of each run; `● name` below the files that failed.

use super::figures::Figures;
use super::results::{Output, TestCounts};

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut has_summary = false;
    let mut failed_file = None;
    let mut broken_files = Vec::new();
    for line in output.lines() {
        // With colours, the word has a space on either side.
        let heading = line.strip_prefix(' ').unwrap_or(line);
        if let Some(file) = heading.strip_prefix("FAIL ") {
            failed_file = Some(file.split(" (").next().unwrap_or(file).trim());
        } else if heading.starts_with("PASS ") {
            failed_file = None;
        } else if let (Some(name), Some(file)) = (line.strip_prefix("  ● "), failed_file) {
            match name {
                "Test suite failed to run" if broken_files.contains(&file) => {}
                "Test suite failed to run" => {
                    counts.failed_tests.add(file);
                    broken_files.push(file);
                }
                "Console" => {}
                _ => counts.failed_tests.add(name),
            }
        } else if let Some((passed, failed, skipped)) = figures(line) {
            counts.add(passed, failed, skipped);
            has_summary = true;
        }
    }
    // A file that does not load is not among the tests.
    counts.add(0, broken_files.len() as u64, 0);
    has_summary.then_some(counts)
}

/// `Tests:       2 failed, 1 skipped, 1 todo, 3 passed, 7 total`
fn figures(line: &str) -> Option<(u64, u64, u64)> {
    let figures = Figures::counted(line.strip_prefix("Tests:")?, ',')?;
    figures.find(&["total"])?;
    Some((figures.sum(&["passed"]), figures.sum(&["failed"]), figures.sum(&["skipped", "todo", "pending"])))
}
