//! Parses the output of `go test` and `gotestsum`.

use std::borrow::Cow;

use serde::Deserialize;

use super::results::{Figures, Output, RunCounts};

/// Parses `go test`: plain, `-v` and `-json`.
///
/// Tests and subtests are counted alike, as gotestsum does. Plain output names only failed tests: passed
/// tests are not counted, and the counts are partial. A package that failed without a failed test (it does
/// not build, it timed out) is one failure.
pub(super) fn parse_go(output: &Output<'_>) -> Option<RunCounts> {
    let mut packages = Packages::default();
    for line in output.lines() {
        if matches!(line, "=== Failed" | "=== Skipped" | "=== Errors") {
            // gotestsum repeats the results from here on.
            break;
        }
        if line.starts_with('{') {
            packages.parse_event(line);
        } else {
            packages.parse_line(line);
        }
    }
    let Packages { mut counts, has_results, .. } = packages;
    counts.is_partial |= output.is_truncated || output.may_be_shortened;
    has_results.then_some(counts)
}

#[derive(Default)]
struct Packages {
    counts: RunCounts,
    has_results: bool,
    passed: u64,
    failed: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event<'l> {
    #[serde(borrow)]
    action: Cow<'l, str>,
    #[serde(borrow)]
    package: Cow<'l, str>,
    #[serde(borrow)]
    test: Option<Cow<'l, str>>,
}

impl Packages {
    /// `--- FAIL: TestSub/bad (0.00s)`; or tab-separated: `ok` or `FAIL`, the package, and its time or error.
    fn parse_line(&mut self, line: &str) {
        if let Some(rest) = line.trim_start().strip_prefix("--- ") {
            let Some((verdict, test)) = rest.split_once(": ") else { return };
            let name = test.rsplit_once(" (").map_or(test, |(name, _)| name);
            self.add_test(verdict, name);
        } else if let Some(package) = line.strip_prefix("ok  \t") {
            self.has_results = true;
            self.counts.is_partial |= self.passed == 0 && !package.contains("[no tests to run]");
            (self.passed, self.failed) = (0, 0);
        } else if let Some(package) = line.strip_prefix("FAIL\t") {
            let name = package.split('\t').next().unwrap_or(package);
            self.counts.is_partial |= self.passed == 0 && !package.contains(" failed]");
            self.package_failed(name);
        }
    }

    fn parse_event(&mut self, line: &str) {
        // Most events are output lines.
        if line.contains(r#""Action":"output""#) || line.contains(r#""Action":"run""#) {
            return;
        }
        let Ok(event) = serde_json::from_str::<Event<'_>>(line) else { return };
        match (&*event.action, event.test) {
            ("pass", Some(test)) => self.add_test("PASS", &test),
            ("fail", Some(test)) => self.add_test("FAIL", &test),
            ("skip", Some(test)) => self.add_test("SKIP", &test),
            ("fail", None) => self.package_failed(&event.package),
            ("pass" | "skip", None) => (self.passed, self.failed) = (0, 0),
            _ => {}
        }
    }

    fn add_test(&mut self, verdict: &str, name: &str) {
        match verdict {
            "PASS" => {
                self.passed += 1;
                self.counts.add(1, 0, 0);
                self.counts.add_passed_test(name);
            }
            "FAIL" => {
                self.failed += 1;
                self.counts.add(0, 1, 0);
                self.counts.failed_tests.add(name);
            }
            "SKIP" => self.counts.add(0, 0, 1),
            _ => return,
        }
        self.has_results = true;
    }

    fn package_failed(&mut self, package: &str) {
        self.has_results = true;
        if self.failed == 0 {
            self.counts.add(0, 1, 0);
            self.counts.failed_tests.add(package);
        }
        (self.passed, self.failed) = (0, 0);
    }
}

/// Parses `gotestsum`: the line `DONE 10 tests, 1 skipped, 3 failures, 1 error in 0.3s`, with any output
/// format above it.
pub(super) fn parse_gotestsum(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
    for line in output.lines() {
        if let Some(test) = line.strip_prefix("=== FAIL: ") {
            let test = test.rsplit_once(" (").map_or(test, |(name, _)| name);
            // The package comes first; a test name has no space.
            counts.failed_tests.add(test.split_once(' ').map_or(test, |(_, name)| name));
        } else if let Some((total, failed, skipped, errors)) = gotestsum_figures(line) {
            counts.add_total(total, failed, skipped);
            counts.add(0, errors, 0);
        }
    }
    Some(counts)
}

fn gotestsum_figures(line: &str) -> Option<(u64, u64, u64, u64)> {
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
