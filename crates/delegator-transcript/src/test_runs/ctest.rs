//! `ctest`: `33% tests passed, 4 tests failed out of 6`, then the lists of those that did not run and that failed.
//!
//! A skipped test is among the total and, for the runner, among the passed; a disabled one is in neither.

use super::figures::leading;
use super::{Output, Reading};

pub(super) fn read(output: &Output<'_>) -> Option<Reading> {
    let mut reading = Reading::default();
    let mut is_told = false;
    let mut list = List::None;
    // Told as they end and in the list; either may be cut off.
    let (mut as_they_ended, mut listed_skips) = (0_u64, 0_u64);
    for line in output.lines() {
        if let Some((total, failed)) = figures(line) {
            reading.add_total(total, failed, 0);
            is_told = true;
        } else if line.starts_with("The following tests ") && is_told {
            list = match line.ends_with(" FAILED:") {
                true => List::Failed,
                false => List::NotRun,
            };
        } else if let Some((name, why)) = listed(line) {
            match (&list, why) {
                (List::Failed, _) => reading.failed_tests.add(name),
                (List::NotRun, "Disabled") => reading.add(0, 0, 1),
                (List::NotRun, _) => listed_skips += 1,
                (List::None, _) => {}
            }
        } else {
            list = List::None;
            as_they_ended += u64::from(line.contains("***Skipped "));
        }
    }
    let skipped = as_they_ended.max(listed_skips).min(reading.passed);
    reading.passed -= skipped;
    reading.add(0, 0, skipped);
    is_told.then_some(reading)
}

enum List {
    None,
    NotRun,
    Failed,
}

fn figures(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = leading(line)?;
    let rest = rest.strip_prefix("% tests passed")?;
    let (failed, total) = match rest.strip_prefix(", ").and_then(leading) {
        Some((failed, rest)) => (failed, rest.split_once(" out of ")?.1),
        None => (0, rest.split_once(" out of ")?.1),
    };
    Some((leading(total)?.0, failed))
}

/// A tab, then `  2 - takes_away (Not Run)`, perhaps with labels behind it.
fn listed(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = leading(line.strip_prefix('\t')?.trim_start())?;
    let (name, rest) = rest.strip_prefix(" - ")?.split_once(" (")?;
    Some((name, rest.split(')').next()?))
}
