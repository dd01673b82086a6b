//! Parses test results from the output of commands.
//!
//! No agent reports test results in a structured form, but the runners print summaries. Each runner has a parser that
//! accepts only its own lines:
//!
//! - Counts are those that the runner prints. If it prints a total but no passed count, passed is the remainder.
//! - *Failed* are tests that failed or broke, and files or packages that could not be run, if the runner continues and
//!   reports them. A build that stops before any test is no test run.
//! - *Skipped* are skipped, ignored, pending, disabled, incomplete, to-do and expectedly failing tests, but not tests
//!   excluded by a filter, if the runner distinguishes them.
//! - If tests ran that the output does not count (plain `go test`, output shortened by `tail`), the counts are
//!   *partial*: lower bounds.
//!
//! The parsers are selected by one search for [`markers`] in the escaped output, so that other commands cost no more
//! than that search. Commands that only print text (`cat`, `grep`, `git`, …) are never test runs, see [`command`].
//!
//! Parsing is linear in the output. At most [`MAX_NAMES`] names of at most [`MAX_NAME_BYTES`] bytes are stored.

mod cargo;
pub(crate) mod command;
mod ctest;
mod dotnet;
mod figures;
mod go;
mod gotestsum;
mod gradle;
mod jest;
mod junit;
mod markers;
mod maven;
mod mocha;
mod nextest;
mod node;
mod phpunit;
mod pytest;
mod rspec;
mod unittest;
mod vitest;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::control;
use crate::json::Text;
use command::ParsedCommand;
pub(crate) use markers::RunnerSet;

/// Names of failed tests that are stored.
pub(crate) const MAX_NAMES: usize = 100;
/// Names of passed tests that are stored; they can clear earlier failures.
const MAX_PASSED_NAMES: usize = 1_000;
const MAX_NAME_BYTES: usize = 300;

/// The test runner that printed a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    Cargo,
    Nextest,
    Pytest,
    Unittest,
    Jest,
    Vitest,
    Mocha,
    Go,
    Gotestsum,
    /// `node --test`
    Node,
    /// JUnit's own console runners.
    Junit,
    Maven,
    Gradle,
    Rspec,
    Phpunit,
    Ctest,
    Dotnet,
}

/// Returns the results in the output; `None` or empty counts if there are none.
type Parser = fn(&Output<'_>) -> Option<TestCounts>;

impl Runner {
    const ALL: [(Runner, Parser); 17] = [
        (Runner::Cargo, cargo::parse),
        (Runner::Nextest, nextest::parse),
        (Runner::Pytest, pytest::parse),
        (Runner::Unittest, unittest::parse),
        (Runner::Jest, jest::parse),
        (Runner::Vitest, vitest::parse),
        (Runner::Mocha, mocha::parse),
        (Runner::Go, go::parse),
        (Runner::Gotestsum, gotestsum::parse),
        (Runner::Node, node::parse),
        (Runner::Junit, junit::parse),
        (Runner::Maven, maven::parse),
        (Runner::Gradle, gradle::parse),
        (Runner::Rspec, rspec::parse),
        (Runner::Phpunit, phpunit::parse),
        (Runner::Ctest, ctest::parse),
        (Runner::Dotnet, dotnet::parse),
    ];

    /// Whether both runners run the same tests.
    pub(crate) fn runs_same_tests_as(self, other: Runner) -> bool {
        let family = |runner: Runner| match runner {
            Runner::Nextest => Runner::Cargo,
            Runner::Gotestsum => Runner::Go,
            runner => runner,
        };
        family(self) == family(other)
    }

    /// Whether the output of the other runner contains what this one would print.
    fn is_part_of(self, other: Runner) -> bool {
        matches!(
            (self, other),
            (Runner::Go, Runner::Gotestsum) | (Runner::Junit, Runner::Maven | Runner::Phpunit)
        )
    }
}

/// The results of one run of a runner.
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
    fn add_passed_test(&mut self, name: &str) {
        if self.passed_tests.len() < MAX_PASSED_NAMES {
            self.passed_tests.push(truncate(name));
        }
    }

    /// Adds counts of which passed is the remainder.
    fn add_total(&mut self, total: u64, failed: u64, skipped: u64) {
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

    fn non_empty(self) -> Option<TestCounts> {
        (!self.counts_nothing() || self.is_partial).then_some(self)
    }
}

/// Names of tests without duplicates; the first [`MAX_NAMES`] are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestNames(pub(crate) Vec<String>);

impl TestNames {
    fn add(&mut self, name: &str) {
        let name = name.trim();
        if self.0.len() >= MAX_NAMES || name.is_empty() {
            return;
        }
        let name = truncate(name);
        if !self.0.contains(&name) {
            self.0.push(name);
        }
    }
}

fn truncate(name: &str) -> String {
    name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default().to_owned()
}

/// The output of a command, without control sequences.
#[derive(Debug)]
struct Output<'t> {
    text: Cow<'t, str>,
    /// The output passed through `tail` or `head`.
    may_be_shortened: bool,
    /// The middle is missing because the line was over-long.
    is_truncated: bool,
}

impl Output<'_> {
    /// Lines as a terminal finally shows them: text before a carriage return is overwritten.
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.split('\n').map(|line| {
            let line = line.strip_suffix('\r').unwrap_or(line);
            memchr::memrchr(b'\r', line.as_bytes()).map_or(line, |at| &line[at + 1..])
        })
    }
}

/// The runners that may have printed the output; `tail` is its end if the middle is missing.
pub(crate) fn candidate_runners(output: &Text<'_>, tail: Option<&Text<'_>>) -> RunnerSet {
    let mut runners = markers::find_runners(output.stored().0);
    runners.merge(tail.map(|rest| markers::find_runners(rest.stored().0)).unwrap_or_default());
    runners
}

/// Parses the results of all runners in the output of a command.
pub(crate) fn parse(
    candidates: RunnerSet,
    command: &ParsedCommand,
    output: &Text<'_>,
    tail: Option<&Text<'_>>,
) -> Vec<(Runner, TestCounts)> {
    if candidates.is_empty() || command.only_prints_text() {
        return Vec::new();
    }
    let text = match tail {
        None => output.resolve(),
        Some(rest) => Cow::Owned(format!("{}\n{}", output.resolve(), rest.resolve())),
    };
    let output = Output {
        text: control::strip_control_sequences(&text),
        may_be_shortened: command.has_head_or_tail(),
        is_truncated: tail.is_some(),
    };
    let parsers = Runner::ALL.iter().filter(|(runner, _)| candidates.contains(*runner));
    let parsed: Vec<(Runner, TestCounts)> =
        parsers.filter_map(|(runner, reader)| Some((*runner, reader(&output)?.non_empty()?))).collect();
    let runners: Vec<Runner> = parsed.iter().map(|(runner, _)| *runner).collect();
    parsed.into_iter().filter(|(runner, _)| !runners.iter().any(|other| runner.is_part_of(*other))).collect()
}
