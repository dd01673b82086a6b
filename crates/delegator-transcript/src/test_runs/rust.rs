//! Parses the output of `cargo test` and `cargo nextest run`.

use super::results::{Figures, Output, RunCounts, TestNames, leading_number};

/// Parses `cargo test`: libtest's summary of every binary and of the doctests, summed.
///
/// `running N tests` announces each binary. Only a summary whose counts add up to N is used, so that text
/// printed by a test under `--nocapture` is not. libtest output that nextest captured precedes nextest's
/// summary and is ignored.
pub(super) fn parse_cargo(output: &Output<'_>) -> Option<RunCounts> {
    let mut state = Binaries::default();
    for line in output.lines() {
        if figures(line).is_some() {
            state = Binaries { saw_start: true, ..Binaries::default() };
        } else {
            state.parse_line(line);
        }
    }
    let Binaries { mut counts, summaries, announced, saw_start, .. } = state;
    // A binary that was announced and has no summary crashed, or its summary is missing.
    counts.is_partial |= announced.is_some();
    counts.is_partial |= output.is_truncated || (output.may_be_shortened && !saw_start);
    (summaries > 0 || announced.is_some()).then_some(counts)
}

#[derive(Default)]
struct Binaries {
    counts: RunCounts,
    summaries: u64,
    announced: Option<u64>,
    was_announced: bool,
    saw_start: bool,
    /// From the progress lines.
    failed: TestNames,
    /// From the list before the summary, which is more reliable if tests print in between.
    listed: Option<TestNames>,
}

impl Binaries {
    fn parse_line(&mut self, line: &str) {
        if let Some(tests) = line.strip_prefix("test ") {
            self.parse_test(tests);
        } else if let Some(count) = announcement(line) {
            self.counts.is_partial |= self.announced.is_some();
            (self.announced, self.was_announced) = (Some(count), true);
            (self.failed, self.listed) = (TestNames::default(), None);
        } else if line == "failures:" {
            self.listed = Some(TestNames::default());
        } else if let (Some(listed), Some(name)) = (&mut self.listed, line.strip_prefix("    ")) {
            if !name.starts_with(' ') {
                listed.add(name);
            }
        } else if line.starts_with("    Finished ") {
            self.saw_start = true;
        }
    }

    fn parse_test(&mut self, rest: &str) {
        if let Some(figures) = rest.strip_prefix("result: ") {
            self.parse_summary(figures);
        } else if let Some(name) = rest.strip_suffix(" ... ok") {
            self.counts.add_passed_test(name);
        } else if let Some(name) = rest.strip_suffix(" ... FAILED") {
            self.failed.add(name);
        }
    }

    fn parse_summary(&mut self, text: &str) {
        let Some((_, figures)) = text.split_once(". ") else { return };
        let figures = figures.split("; finished in ").next().unwrap_or_default();
        let Some(figures) = Figures::counted(figures, ';') else { return };
        let get = |name: &str| figures.find(&[name]);
        let (Some(passed), Some(failed), Some(ignored)) = (get("passed"), get("failed"), get("ignored"))
        else {
            return;
        };
        let sum = figures.sum(&["passed", "failed", "ignored", "measured"]);
        let is_as_announced = self.announced.take_if(|announced| *announced == sum).is_some();
        if !is_as_announced && self.was_announced {
            return;
        }
        self.summaries += 1;
        self.counts.add(passed, failed, ignored);
        let from_progress = std::mem::take(&mut self.failed);
        let listed = self.listed.take().filter(|listed| listed.0.len() as u64 == failed);
        for name in listed.unwrap_or(from_progress).0 {
            self.counts.failed_tests.add(&name);
        }
    }
}

fn announcement(line: &str) -> Option<u64> {
    let (count, rest) = leading_number(line.strip_prefix("running ")?)?;
    matches!(rest, " test" | " tests").then_some(count)
}

/// `     Summary [   0.329s] 9 tests run: 6 passed (1 slow), 3 failed, 1 skipped`
fn figures(line: &str) -> Option<(u64, &str)> {
    let rest = line.trim_start_matches(' ').strip_prefix("Summary [")?;
    let (_, rest) = rest.split_once("] ")?;
    let (run, rest) = leading_number(rest)?;
    // `3/9 tests run`: the run stopped early.
    let rest = rest.strip_prefix('/').and_then(leading_number).map_or(rest, |(_, rest)| rest);
    let figures = rest.strip_prefix(" tests run: ").or_else(|| rest.strip_prefix(" test run: "))?;
    Some((run, figures))
}

/// Parses `cargo nextest run`: one `Summary` line, followed by every failed test.
///
/// Nextest counts ignored tests and tests excluded by a filter alike as skipped.
pub(super) fn parse_nextest(output: &Output<'_>) -> Option<RunCounts> {
    let mut counts = RunCounts::default();
    let mut has_summary = false;
    for line in output.lines() {
        if let Some((run, figures)) = figures(line) {
            has_summary = true;
            if run > 0 {
                add_counts(&mut counts, figures);
            }
        } else if let Some((status, name)) = parse_progress(line) {
            match status {
                "PASS" => counts.add_passed_test(name),
                _ if has_summary && is_failure(status) => counts.failed_tests.add(name),
                _ => {}
            }
        }
    }
    has_summary.then_some(counts)
}

fn add_counts(counts: &mut RunCounts, figures: &str) {
    // `6 passed (1 slow, 2 flaky), 3 failed`: commas in brackets do not separate counts.
    let mut plain = String::with_capacity(figures.len());
    let mut is_inside = false;
    for character in figures.chars() {
        match character {
            '(' => is_inside = true,
            ')' => is_inside = false,
            _ if !is_inside => plain.push(character),
            _ => {}
        }
    }
    let figures = Figures::counted(&plain, ',').unwrap_or_default();
    let failed = figures.sum(&["failed", "timed out", "exec failed"]);
    counts.add(figures.sum(&["passed"]), failed, figures.sum(&["skipped"]));
}

/// `        FAIL [   0.166s] (4/9) alpha tests::deep::fails_too`
fn parse_progress(line: &str) -> Option<(&str, &str)> {
    let (status, rest) = line.trim_start().split_once(" [")?;
    let is_status = status.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || " -/".contains(c));
    let (time, name) = rest.split_once("] ")?;
    let name = name.trim_start();
    let name = match name.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        Some((position, name)) if position.contains('/') => name.trim_start(),
        _ => name,
    };
    (is_status && time.ends_with('s') && !name.is_empty()).then_some((status, name))
}

fn is_failure(status: &str) -> bool {
    let word = status.rsplit(' ').next().unwrap_or_default();
    !(status.starts_with("FLAKY") || matches!(word, "PASS" | "SLOW" | "LEAK" | "SKIP"))
}
