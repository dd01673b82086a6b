//! Parses the output of `jest`, `vitest`, `mocha` and `node --test`.

use super::results::{Figures, Output, RunCounts, leading_number, numbered};

/// Parses `jest`: the line `Tests: … total` of each run; `● name` below the files that failed.
pub(super) fn parse_jest(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
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
        } else if let Some((passed, failed, skipped)) = jest_figures(line) {
            counts.add(passed, failed, skipped);
            has_summary = true;
        }
    }
    // A file that does not load is not among the tests.
    counts.add(0, broken_files.len() as u64, 0);
    has_summary.then_some(counts)
}

/// `Tests:       2 failed, 1 skipped, 1 todo, 3 passed, 7 total`
fn jest_figures(line: &str) -> Option<(u64, u64, u64)> {
    let figures = Figures::counted(line.strip_prefix("Tests:")?, ',')?;
    figures.find(&["total"])?;
    Some((figures.sum(&["passed"]), figures.sum(&["failed"]), figures.sum(&["skipped", "todo", "pending"])))
}

/// Parses `vitest`: the line `Tests  2 failed | 3 passed (5)`; ` FAIL  file > name` for each failure, with
/// only the file if it does not load.
pub(super) fn parse_vitest(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
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
        } else if let Some((passed, failed, skipped)) = vitest_figures(line) {
            counts.add(passed, failed, skipped);
            has_summary = true;
        }
    }
    counts.add(0, broken, 0);
    has_summary.then_some(counts)
}

fn vitest_figures(line: &str) -> Option<(u64, u64, u64)> {
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

/// Lines of a title; longer ones are not a title.
const MAX_TITLE_DEPTH: usize = 16;

/// Parses `mocha` with any reporter that prints the epilogue: `3 passing`, `2 pending`, `1 failing`, then the
/// failures, each with a title of one or more lines that ends with a colon.
pub(super) fn parse_mocha(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
    let mut section = Section::Before;
    let mut title: Vec<&str> = Vec::new();
    for line in output.lines() {
        let text = line.trim();
        if let Some(count) = passing(line) {
            counts.add(count, 0, 0);
            section = Section::Figures;
        } else if section == Section::Figures {
            match leading_number(text) {
                Some((count, " pending")) => counts.add(0, 0, count),
                Some((count, " failing")) => {
                    counts.add(0, count, 0);
                    section = Section::Failures;
                }
                _ if text.is_empty() => {}
                _ => section = Section::After,
            }
        } else if section == Section::Failures {
            let begins = numbered(text).filter(|_| line.starts_with("  ") && !line.starts_with("     "));
            match begins {
                Some(first) => title = vec![first],
                None if !title.is_empty() && line.starts_with("       ") => title.push(text),
                None => title.clear(),
            }
            if let Some(name) = title.join(" ").strip_suffix(':') {
                counts.failed_tests.add(name);
                title.clear();
            } else if title.len() > MAX_TITLE_DEPTH {
                title.clear();
            }
        }
    }
    (section != Section::Before).then_some(counts)
}

#[derive(PartialEq)]
enum Section {
    Before,
    Figures,
    Failures,
    After,
}

/// `  3 passing (6ms)`
fn passing(line: &str) -> Option<u64> {
    let (count, rest) = leading_number(line.strip_prefix("  ")?.trim_start())?;
    let time = rest.strip_prefix(" passing")?.trim();
    (time.is_empty() || (time.starts_with('(') && time.ends_with(')'))).then_some(count)
}

/// Parses `node --test`, reporters `spec` (`ℹ pass 3`) and `tap` (`# pass 3`).
///
/// Suites are not tests: a suite that failed because of its tests is not listed.
pub(super) fn parse_node(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
    let mut figures = NodeCounts::default();
    let mut lists_failures = false;
    let mut tap_failure: Option<&str> = None;
    for line in output.lines() {
        if let Some(figure) = line.strip_prefix("ℹ ").or_else(|| line.strip_prefix("# ")) {
            if figures.push(figure) {
                let NodeCounts { passed, failed, skipped, .. } = std::mem::take(&mut figures);
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
struct NodeCounts {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Only Node prints a count of cancelled tests; other TAP producers do not.
    is_node: bool,
}

impl NodeCounts {
    /// Adds a count; returns whether it was the last one of the summary.
    fn push(&mut self, figure: &str) -> bool {
        let Some((name, count)) = figure.split_once(' ') else { return false };
        if name == "duration_ms" {
            return self.is_node;
        }
        let Ok(count) = count.trim().parse::<u64>() else { return false };
        match name {
            "tests" => *self = NodeCounts::default(),
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
