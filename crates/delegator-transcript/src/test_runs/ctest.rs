//! Parses `ctest`: `33% tests passed, 4 tests failed out of 6`, then the lists of tests that did not run and
//! that failed.
//!
//! ctest counts a skipped test as passed; a disabled one is in neither count.

use super::results::{Output, RunCounts, leading_number};

pub(super) fn parse(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
    let mut has_summary = false;
    let mut list = List::None;
    // Skips are printed as progress and in the list; either may be missing.
    let (mut skips_in_progress, mut listed_skips) = (0_u64, 0_u64);
    for line in output.lines() {
        if let Some((total, failed)) = figures(line) {
            counts.add_total(total, failed, 0);
            has_summary = true;
        } else if line.starts_with("The following tests ") && has_summary {
            list = if line.ends_with(" FAILED:") { List::Failed } else { List::NotRun };
        } else if let Some((name, reason)) = parse_list_entry(line) {
            match (&list, reason) {
                (List::Failed, _) => counts.failed_tests.add(name),
                (List::NotRun, "Disabled") => counts.add(0, 0, 1),
                (List::NotRun, _) => listed_skips += 1,
                (List::None, _) => {}
            }
        } else {
            list = List::None;
            skips_in_progress += u64::from(line.contains("***Skipped "));
        }
    }
    let skipped = skips_in_progress.max(listed_skips).min(counts.passed);
    counts.passed -= skipped;
    counts.add(0, 0, skipped);
    has_summary.then_some(counts)
}

enum List {
    None,
    NotRun,
    Failed,
}

fn figures(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = leading_number(line)?;
    let rest = rest.strip_prefix("% tests passed")?;
    let (failed, total) = match rest.strip_prefix(", ").and_then(leading_number) {
        Some((failed, rest)) => (failed, rest.split_once(" out of ")?.1),
        None => (0, rest.split_once(" out of ")?.1),
    };
    Some((leading_number(total)?.0, failed))
}

/// A tab, then `  2 - takes_away (Not Run)`, optionally followed by labels.
fn parse_list_entry(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = leading_number(line.strip_prefix('\t')?.trim_start())?;
    let (name, rest) = rest.strip_prefix(" - ")?.split_once(" (")?;
    Some((name, rest.split(')').next()?))
}
