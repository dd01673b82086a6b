//! Parses test results from the output of commands.
//!
//! No agent reports test results in a structured form, but the runners print summaries. Each runner has a
//! parser that accepts only its own lines:
//!
//! - Counts are those that the runner prints. If it prints a total but no passed count, passed is the
//!   remainder.
//! - *Failed* are tests that failed or broke, and files or packages that could not be run, if the runner
//!   continues and reports them. A build that stops before any test is no test run.
//! - *Skipped* are skipped, ignored, pending, disabled, incomplete, to-do and expectedly failing tests, but
//!   not tests excluded by a filter, if the runner distinguishes them.
//! - If tests ran that the output does not count (plain `go test`, output shortened by `tail`), the counts
//!   are *partial*: lower bounds.
//!
//! The parsers are selected by one search for [`markers`] in the escaped output, so that other commands cost
//! no more than that search. Commands that only print text (`cat`, `grep`, `git`, …) are never test runs, see
//! [`command`].
//!
//! Parsing is linear in the output.

pub(crate) mod command;
mod ctest;
mod dotnet;
mod go;
mod javascript;
mod jvm;
mod markers;
mod phpunit;
mod python;
mod results;
mod rspec;
mod rust;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::control_sequences;
use crate::json::Text;
use command::ParsedCommand;
use markers::RunnerSet;
use results::Output;
pub(crate) use results::{MAX_NAMES, RunCounts};

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

impl Runner {
    pub(crate) fn runs_same_tests_as(self, other: Runner) -> bool {
        let family = |runner: Runner| match runner {
            Runner::Nextest => Runner::Cargo,
            Runner::Gotestsum => Runner::Go,
            runner => runner,
        };
        family(self) == family(other)
    }

    /// Whether the output of the other runner contains what this one would print.
    pub(super) fn is_part_of(self, other: Runner) -> bool {
        matches!(
            (self, other),
            (Runner::Go, Runner::Gotestsum) | (Runner::Junit, Runner::Maven | Runner::Phpunit)
        )
    }
}

/// Returns the results in the output; `None` or empty counts if there are none.
type Parser = fn(&Output<'_>) -> Option<RunCounts>;

const PARSERS: [(Runner, Parser); 17] = [
    (Runner::Cargo, rust::parse_cargo),
    (Runner::Nextest, rust::parse_nextest),
    (Runner::Pytest, python::parse_pytest),
    (Runner::Unittest, python::parse_unittest),
    (Runner::Jest, javascript::parse_jest),
    (Runner::Vitest, javascript::parse_vitest),
    (Runner::Mocha, javascript::parse_mocha),
    (Runner::Go, go::parse_go),
    (Runner::Gotestsum, go::parse_gotestsum),
    (Runner::Node, javascript::parse_node),
    (Runner::Junit, jvm::parse_junit),
    (Runner::Maven, jvm::parse_maven),
    (Runner::Gradle, jvm::parse_gradle),
    (Runner::Rspec, rspec::parse),
    (Runner::Phpunit, phpunit::parse),
    (Runner::Ctest, ctest::parse),
    (Runner::Dotnet, dotnet::parse),
];

/// The runners that may have printed the output; `tail` is its end if the middle is missing.
pub(crate) fn candidate_runners(output: &Text<'_>, tail: Option<&Text<'_>>) -> RunnerSet {
    let mut runners = markers::find_runners(output.stored().0);
    runners.merge(tail.map(|rest| markers::find_runners(rest.stored().0)).unwrap_or_default());
    runners
}

pub(crate) fn parse(
    candidates: RunnerSet,
    command: &ParsedCommand,
    output: &Text<'_>,
    tail: Option<&Text<'_>>,
) -> Vec<(Runner, RunCounts)> {
    if candidates.is_empty() || command.only_prints_text() {
        return Vec::new();
    }
    let text = match tail {
        None => output.resolve(),
        Some(rest) => Cow::Owned(format!("{}\n{}", output.resolve(), rest.resolve())),
    };
    let output = Output {
        text: control_sequences::strip_control_sequences(&text),
        may_be_shortened: command.has_head_or_tail(),
        is_truncated: tail.is_some(),
    };
    let parsers = PARSERS.iter().filter(|(runner, _)| candidates.contains(*runner));
    let has_result = |counts: &RunCounts| counts.is_partial || !counts.counts_nothing();
    let parsed: Vec<(Runner, RunCounts)> =
        parsers.filter_map(|(runner, parse)| Some((*runner, parse(&output).filter(has_result)?))).collect();
    let runners: Vec<Runner> = parsed.iter().map(|(runner, _)| *runner).collect();
    parsed.into_iter().filter(|(runner, _)| !runners.iter().any(|other| runner.is_part_of(*other))).collect()
}
