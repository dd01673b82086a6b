//! The results of a test run, and the output from which they are parsed. Memory is bounded: only some names
//! of tests are stored.

use std::borrow::Cow;

use delegator_domain::text::beginning;

/// Names of failed tests that are stored.
pub(crate) const MAX_NAMES: usize = 100;
/// Names of passed tests that are stored; they can clear earlier failures.
const MAX_PASSED_NAMES: usize = 1_000;
const MAX_NAME_BYTES: usize = 300;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) failed_tests: TestNames,
    /// Some of the passed tests, if the runner prints their names.
    pub(crate) passed_tests: Vec<String>,
    /// Some tests ran without being counted.
    pub(crate) is_partial: bool,
}

impl TestCounts {
    pub(super) fn add_passed_test(&mut self, name: &str) {
        if self.passed_tests.len() < MAX_PASSED_NAMES {
            self.passed_tests.push(beginning(name, MAX_NAME_BYTES).to_owned());
        }
    }

    /// Adds counts of which passed is the remainder.
    pub(super) fn add_total(&mut self, total: u64, failed: u64, skipped: u64) {
        let passed = total.saturating_sub(failed).saturating_sub(skipped);
        self.add(passed, failed, skipped);
    }

    pub(crate) fn add(&mut self, passed: u64, failed: u64, skipped: u64) {
        self.passed = self.passed.saturating_add(passed);
        self.failed = self.failed.saturating_add(failed);
        self.skipped = self.skipped.saturating_add(skipped);
    }

    pub(crate) fn counts_nothing(&self) -> bool {
        (self.passed, self.failed, self.skipped) == (0, 0, 0)
    }
}

/// Names of tests without duplicates; the first [`MAX_NAMES`] are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestNames(pub(crate) Vec<String>);

impl TestNames {
    pub(super) fn add(&mut self, name: &str) {
        let name = beginning(name.trim(), MAX_NAME_BYTES);
        if self.0.len() < MAX_NAMES && !name.is_empty() && !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_owned());
        }
    }
}

/// The output of a command, without control sequences.
#[derive(Debug)]
pub(super) struct Output<'t> {
    pub(super) text: Cow<'t, str>,
    /// The output passed through `tail` or `head`.
    pub(super) may_be_shortened: bool,
    /// The middle is missing because the line was over-long.
    pub(super) is_truncated: bool,
}

impl Output<'_> {
    /// Lines as a terminal finally shows them: text before a carriage return is overwritten.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.split('\n').map(|line| {
            let line = line.strip_suffix('\r').unwrap_or(line);
            memchr::memrchr(b'\r', line.as_bytes()).map_or(line, |at| &line[at + 1..])
        })
    }
}
