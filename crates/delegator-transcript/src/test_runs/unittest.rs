//! Parses `python -m unittest` and runners based on it: `Ran N tests`, then `OK` or `FAILED` with counts.
//!
//! A test with several failing subtests is one failed test, although the runner counts each: failed tests are
//! counted by the headings of their reports if all are present. An error in a class or module fixture is a
//! failure, but not one of the tests that ran.

use super::figures::{Figures, leading_number};
use super::results::{Output, TestCounts, TestNames};

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut reports = Reports::default();
    let mut ran = None;
    let mut is_after_rule = false;
    for line in output.lines() {
        let heading = heading(line, std::mem::replace(&mut is_after_rule, is_rule(line)));
        if let Some(heading) = heading {
            reports.heading(heading);
        } else if let Some((count, _)) =
            line.strip_prefix("Ran ").and_then(leading_number).filter(|(_, rest)| is_ran(rest))
        {
            ran = Some(count);
        } else if let Some(figures) = verdict(line) {
            if let Some(ran) = ran.take() {
                std::mem::take(&mut reports).add_to(&mut counts, ran, &figures);
            }
        } else if let Some(name) = line.strip_suffix(" ... ok") {
            counts.add_passed_test(&name_of(name));
        }
    }
    Some(counts)
}

/// The separator above each report.
fn is_rule(line: &str) -> bool {
    line.starts_with("==========") && line.bytes().all(|byte| byte == b'=')
}

/// Other programs print `ERROR: ` too, but not below a separator. Unexpected successes share one separator.
fn heading(line: &str, is_after_rule: bool) -> Option<&str> {
    let report = || line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "));
    line.strip_prefix("UNEXPECTED SUCCESS: ").or_else(|| is_after_rule.then(report).flatten())
}

fn is_ran(rest: &str) -> bool {
    rest.starts_with(" test in ") || rest.starts_with(" tests in ")
}

fn verdict(line: &str) -> Option<Figures> {
    match line.split_once(" (") {
        None if line == "OK" => Some(Figures::default()),
        Some(("OK" | "FAILED", figures)) if figures.ends_with(')') => Some(Figures::named(figures, ',', '=')),
        _ => None,
    }
}

/// The reports of failures, by their headings.
#[derive(Default)]
struct Reports {
    count: u64,
    tests: TestNames,
    distinct: std::collections::BTreeSet<u64>,
    outside: u64,
}

impl Reports {
    fn heading(&mut self, heading: &str) {
        self.count += 1;
        let name = name_of(heading);
        let is_new = self.distinct.insert(fingerprint(&name));
        let is_fixture = ["setUp", "tearDown"].iter().any(|fixture| {
            heading
                .strip_prefix(fixture)
                .is_some_and(|rest| rest.starts_with("Class ") || rest.starts_with("Module "))
        });
        self.outside += u64::from(is_fixture && is_new);
        self.tests.add(&name);
    }

    fn add_to(self, counts: &mut TestCounts, ran: u64, figures: &Figures) {
        let reported = figures.sum(&["failures", "errors"]);
        let unexpected = figures.sum(&["unexpected successes"]);
        // Older versions report unexpected successes only in the counts.
        let failed = match self.distinct.len() as u64 {
            tests if self.count == reported.saturating_add(unexpected) => tests,
            tests if self.count == reported => tests.saturating_add(unexpected),
            _ => reported.saturating_add(unexpected),
        };
        let skipped = figures.sum(&["skipped", "expected failures"]);
        let failed_inside = failed.saturating_sub(self.outside);
        let passed = ran.saturating_sub(failed_inside).saturating_sub(skipped);
        counts.add(passed, failed, skipped);
        self.tests.0.iter().for_each(|name| counts.failed_tests.add(name));
    }
}

/// `test_x (package.module.Class.test_x)`, before 3.11 `test_x (package.module.Class)`, optionally with a
/// subtest.
fn name_of(heading: &str) -> String {
    let Some((name, rest)) = heading.split_once(" (") else { return heading.to_owned() };
    let path = rest.split(')').next().unwrap_or_default();
    if path.rsplit('.').next() == Some(name) { path.to_owned() } else { format!("{path}.{name}") }
}

/// Distinguishes names without storing them.
fn fingerprint(name: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
