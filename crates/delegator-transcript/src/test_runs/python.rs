//! Parses the output of `pytest` and `unittest`.

use super::results::{Figures, Output, RunCounts, TestNames, leading_number};

/// Parses `pytest`: the last line has the counts, with `===` or, in quiet mode, without; the short summary
/// names failed tests.
///
/// Expected failures count as skipped and unexpected passes as passed, as in pytest's own JUnit report.
pub(super) fn parse_pytest(output: &Output<'_>) -> Option<RunCounts> {
    let mut sessions = 0;
    let mut summary: Option<RunCounts> = None;
    let (mut from_summary, mut from_progress) = (TestNames::default(), TestNames::default());
    let mut passed = RunCounts::default();
    for line in output.lines() {
        if line.starts_with("===") && line.contains(" test session starts ") {
            sessions += 1;
        } else if line.starts_with("===") && line.contains(" short test summary info ") {
            // An earlier section of this name was printed by a test.
            if sessions < 2 {
                from_summary = TestNames::default();
            }
        } else if let Some((passed, failed, skipped)) = pytest_figures(line) {
            // A session has one last line; several sessions in one output are summed.
            let summary = summary.get_or_insert_default();
            if sessions < 2 {
                *summary = RunCounts::default();
            }
            summary.add(passed, failed, skipped);
        } else if let Some(name) = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")) {
            if is_test_id(name) {
                from_summary.add(name.split(" - ").next().unwrap_or(name));
            }
        } else if let Some((name, has_passed)) = parse_verbose(line) {
            if has_passed {
                passed.add_passed_test(name);
            } else {
                from_progress.add(name);
            }
        }
    }
    let mut counts = summary?;
    if counts.failed > 0 {
        counts.failed_tests = if from_summary.0.is_empty() { from_progress } else { from_summary };
    }
    counts.passed_tests = passed.passed_tests;
    Some(counts)
}

/// `==== 2 failed, 7 passed, 1 skipped, 1 error in 0.05s =====`
fn pytest_figures(line: &str) -> Option<(u64, u64, u64)> {
    // Checked first, because every line passes through here.
    line.bytes().next().filter(|first| *first == b'=' || first.is_ascii_digit())?;
    let line = line.trim_matches('=').trim();
    let (figures, time) = line.rsplit_once(" in ")?;
    let is_time = time.split(' ').next()?.strip_suffix('s')?.parse::<f64>().is_ok();
    if !is_time || !line.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let figures = Figures::counted(figures, ',').filter(|figures| figures.all(is_count_name))?;
    let (passed, failed) = (figures.sum(&["passed", "xpassed"]), figures.sum(&["failed", "error", "errors"]));
    Some((passed, failed, figures.sum(&["skipped", "xfailed"])))
}

fn is_count_name(name: &str) -> bool {
    let result = name.strip_prefix("subtests ").unwrap_or(name);
    matches!(result, "passed" | "failed")
        || matches!(name, "xpassed" | "error" | "errors" | "skipped" | "xfailed")
        || matches!(name, "deselected" | "warning" | "warnings" | "rerun")
}

/// Whether this can be the id of a test or a test file; captured log lines are not.
fn is_test_id(name: &str) -> bool {
    !name.starts_with(' ') && (name.contains("::") || name.contains(".py"))
}

/// `tests/test_a.py::test_x PASSED   [ 50%]`, `[gw0] [ 50%] FAILED tests/test_a.py::test_x`
fn parse_verbose(line: &str) -> Option<(&str, bool)> {
    if line.starts_with("[gw") {
        let (_, rest) = line.split_once("%] ")?;
        let (word, name) = rest.split_once(' ')?;
        return Some((name.trim_end(), has_passed(word)?)).filter(|(name, _)| name.contains("::"));
    }
    let line = match line.strip_suffix("%]") {
        Some(line) => line.rsplit_once('[')?.0.trim_end(),
        None => line,
    };
    let (name, word) = line.rsplit_once(' ')?;
    Some((name, has_passed(word)?)).filter(|(name, _)| name.contains(".py::"))
}

fn has_passed(word: &str) -> Option<bool> {
    match word {
        "PASSED" => Some(true),
        "FAILED" | "ERROR" => Some(false),
        _ => None,
    }
}

/// Parses `python -m unittest` and runners based on it: `Ran N tests`, then `OK` or `FAILED` with counts.
///
/// A test with several failing subtests is one failed test, although the runner counts each: failed tests are
/// counted by the headings of their reports if all are present. An error in a class or module fixture is a
/// failure, but not one of the tests that ran.
pub(super) fn parse_unittest(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
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

    fn add_to(self, counts: &mut RunCounts, ran: u64, figures: &Figures) {
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

fn fingerprint(name: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
