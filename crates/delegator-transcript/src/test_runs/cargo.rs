//! Parses `cargo test`: libtest's summary of every binary and of the doctests, summed.
//!
//! `running N tests` announces each binary. Only a summary whose counts add up to N is used, so that text
//! printed by a test under `--nocapture` is not. libtest output that nextest captured precedes nextest's
//! summary and is ignored.

use super::figures::{Figures, leading_number};
use super::nextest;
use super::results::{Output, TestCounts, TestNames};

pub(super) fn parse(output: &Output<'_>) -> Option<TestCounts> {
    let mut state = Binaries::default();
    for line in output.lines() {
        if nextest::is_summary(line) {
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
    counts: TestCounts,
    summaries: u64,
    /// The announced number of tests of the current binary.
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
