//! Parses `gradle test`: `6 tests completed, 2 failed, 1 skipped` for each task with failures. A task without
//! failures prints no summary; if the build enables test events (`Class > test PASSED`), these are counted.

use super::figures::Figures;
use super::results::{Output, TestCounts};

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    // Events since the last task with a summary.
    let mut events = TestCounts::default();
    let mut has_summary = false;
    for line in output.lines() {
        if let Some((total, failed, skipped)) = figures(line) {
            counts.add_total(total, failed, skipped);
            (events.passed, events.failed, events.skipped) = (0, 0, 0);
            has_summary = true;
        } else if let Some((name, verdict)) = event(line) {
            match verdict {
                "PASSED" => {
                    events.add(1, 0, 0);
                    counts.add_passed_test(name);
                }
                "FAILED" => {
                    events.add(0, 1, 0);
                    counts.failed_tests.add(name);
                }
                _ => events.add(0, 0, 1),
            }
        }
    }
    let has_events = !events.counts_nothing();
    // Some builds print events of skipped and failed tests, but not of passed ones.
    counts.is_partial |= has_events && events.passed == 0;
    counts.add(events.passed, events.failed, events.skipped);
    counts.is_partial |= output.is_truncated || (output.may_be_shortened && !has_summary);
    (has_summary || has_events).then_some(counts)
}

fn figures(line: &str) -> Option<(u64, u64, u64)> {
    let figures = Figures::counted(line, ',')?;
    let total = figures.find(&["tests completed", "test completed"])?;
    Some((total, figures.find(&["failed"])?, figures.sum(&["skipped"])))
}

/// `shop.BadTest > wrong FAILED`, but not `> Task :test FAILED`.
fn event(line: &str) -> Option<(&str, &str)> {
    let (name, verdict) = line.rsplit_once(' ')?;
    let is_event = matches!(verdict, "PASSED" | "FAILED" | "SKIPPED");
    (is_event && name.contains(" > ") && !name.starts_with([' ', '>', '\t'])).then_some((name, verdict))
}
