//! Parses `node --test`, reporters `spec` (`ℹ pass 3`) and `tap` (`# pass 3`).
//!
//! Suites are not tests: a suite that failed because of its tests is not listed.

use super::results::{Output, TestCounts};

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut figures = Figures::default();
    let mut lists_failures = false;
    let mut tap_failure: Option<&str> = None;
    for line in output.lines() {
        if let Some(figure) = line.strip_prefix("ℹ ").or_else(|| line.strip_prefix("# ")) {
            if figures.push(figure) {
                let Figures { passed, failed, skipped, .. } = std::mem::take(&mut figures);
                counts.add(passed, failed, skipped);
            }
        } else if line == "✖ failing tests:" {
            lists_failures = true;
        } else if let Some(name) = line.strip_prefix("✖ ").filter(|_| lists_failures) {
            counts.failed_tests.add(name.rsplit_once(" (").map_or(name, |(name, _)| name));
        } else if let Some(name) = line.trim_start().strip_prefix("not ok ") {
            tap_failure.take().into_iter().for_each(|name| counts.failed_tests.add(name));
            tap_failure = name.split_once(" - ").map(|(_, name)| name);
        } else if tap_failure.is_some() {
            match line.trim() {
                "type: 'suite'" | "failureType: 'subtestsFailed'" => tap_failure = None,
                "..." => tap_failure.take().into_iter().for_each(|name| counts.failed_tests.add(name)),
                _ => {}
            }
        }
    }
    Some(counts)
}

#[derive(Default)]
struct Figures {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Only Node prints a count of cancelled tests; other TAP producers do not.
    is_node: bool,
}

impl Figures {
    /// Adds a count; returns whether it was the last one of the summary.
    fn push(&mut self, figure: &str) -> bool {
        let Some((name, count)) = figure.split_once(' ') else { return false };
        if name == "duration_ms" {
            return self.is_node;
        }
        let Ok(count) = count.trim().parse::<u64>() else { return false };
        match name {
            "tests" => *self = Figures::default(),
            "pass" => self.passed = count,
            "fail" => self.failed = self.failed.saturating_add(count),
            "cancelled" => {
                self.failed = self.failed.saturating_add(count);
                self.is_node = true;
            }
            "skipped" | "todo" => self.skipped = self.skipped.saturating_add(count),
            _ => {}
        }
        false
    }
}
