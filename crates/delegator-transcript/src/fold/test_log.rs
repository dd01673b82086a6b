//! Folds all test runs of a session into the final test results.
//!
//! A run is what one runner reported in the output of one command. It is identified by its runner and by its
//! selectors, the words that select tests (see [`crate::test_runs::command`]). Later runs override earlier
//! ones:
//!
//! - A run of the same tests replaces the earlier run, even if it failed without counts: a suite that no
//!   longer builds does not pass.
//! - A wider run (`pytest` after `pytest tests/a.py`) replaces narrower runs.
//! - A narrower run (`cargo test parser` after `cargo test`) is not added, because its tests are already
//!   counted. It only updates the tests that it names: as passed or as failed. A selector that is itself a
//!   test name also names a test.
//! - Runs of which neither covers the other are summed.
//!
//! Runners of the same tests (`cargo test` and `cargo nextest run`) are treated as one. Declined commands ran
//! nothing. Counts are lower bounds where a runner does not count all tests, see [`crate::test_runs`].

use delegator_domain::text::beginning;
use serde::{Deserialize, Serialize};

use super::finished_command::FinishedCommand;
use crate::event::{CommandExecution, ItemStatus};
use crate::json::Text;
use crate::test_runs::{self, MAX_NAMES, RunCounts, Runner};

/// Runs that are compared; of older ones only the sums are stored.
const MAX_RUNS: usize = 128;
/// The most recent runs, which are listed in the report.
const MAX_LISTED_RUNS: usize = 32;
/// For longer outputs, parsing the command first is cheaper than searching the output.
const LONG_OUTPUT_BYTES: u64 = 8 << 10;
const MAX_SHOWN_COMMAND_BYTES: usize = 300;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    pub passed: u64,
    /// Tests that failed, and test files or packages that could not be run.
    pub failed: u64,
    /// Tests that were skipped, ignored, pending or expected to fail.
    pub skipped: u64,
    /// Names of the first 100 failed tests, each at most 300 bytes; not every runner prints names.
    pub failed_tests: Vec<String>,
    pub failed_tests_not_listed: u64,
    /// Some tests ran without being counted: the counts are lower bounds.
    pub incomplete: bool,
    /// A command exited with a non-zero code although it counted no failed test.
    pub ended_badly: bool,
    pub runs: Vec<TestRunReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRunReport {
    /// Without the shell wrapper; at most 300 bytes.
    pub command: String,
    pub runner: Runner,
    /// Exit code of the command; of a pipe, that of its last command.
    pub exit_code: Option<i32>,
    /// The counts are as the runner reported them.
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    /// Some tests ran without being counted.
    pub incomplete: bool,
    /// The command exited with a non-zero code although it counted no failed test.
    pub ended_badly: bool,
    /// Another run covers the same tests; this one is not in the sums.
    pub superseded: bool,
}

#[derive(Debug, Default)]
pub(super) struct TestLog {
    runs: Vec<Run>,
    /// Sums of runs that are too old to be compared.
    dropped: RunCounts,
}

#[derive(Debug)]
struct Run {
    /// As the runner reported it; later runs update only `counts`.
    report: TestRunReport,
    selectors: Vec<String>,
    counts: RunCounts,
}

/// Parses the test results of a single command, such as the verify command.
pub fn test_report(command: &str, output: &str, exit_code: Option<i32>) -> Option<TestReport> {
    let mut log = TestLog::default();
    let execution = CommandExecution::ended(Text::plain(command), Text::plain(output), exit_code);
    log.record(&FinishedCommand::new(&execution, ItemStatus::Completed, None));
    log.report()
}

impl TestLog {
    pub(super) fn record(&mut self, command: &FinishedCommand<'_, '_>) {
        let &CommandExecution { ref output, ref output_tail, output_bytes, exit_code, .. } =
            command.execution;
        let output_tail = output_tail.as_ref();
        let has_failed = exit_code.is_some_and(|code| code != 0);
        // A long output is not searched at all if the command only prints text.
        if output_bytes > LONG_OUTPUT_BYTES && command.parsed().only_prints_text() {
            return;
        }
        let candidates = test_runs::candidate_runners(output, output_tail);
        // Most commands return here.
        if candidates.is_empty() && (self.runs.is_empty() || !has_failed) {
            return;
        }
        let (script, parsed) = (command.script(), command.parsed());
        let results = test_runs::parse(candidates, parsed, output, output_tail);
        let has_no_results = results.is_empty();
        // The exit code belongs to the whole command: if one runner counted a failure, it does not apply to
        // the others.
        let exit_code_explained = results.iter().any(|(_, counts)| counts.failed > 0);
        for (runner, counts) in results {
            let mut run = Run::new(script, runner, parsed.selectors(runner), exit_code, counts);
            run.report.ended_badly &= !exit_code_explained;
            self.add(run);
        }
        let silent_runner = parsed.named_runner().filter(|_| has_no_results && has_failed);
        if let Some(runner) = silent_runner {
            let no_counts = RunCounts { is_partial: true, ..RunCounts::default() };
            let run = Run::new(script, runner, parsed.selectors(runner), exit_code, no_counts);
            // A run without counts matters only if it replaces another.
            if self.runs.iter().any(|earlier| earlier.is_current() && run.covers(earlier)) {
                self.add(run);
            }
        }
    }

    fn add(&mut self, mut run: Run) {
        for earlier in self.runs.iter_mut().filter(|earlier| earlier.is_current()) {
            if run.covers(earlier) {
                earlier.report.superseded = true;
            } else if earlier.covers(&run) && !earlier.counts.counts_nothing() {
                earlier.apply_later_run(&run);
                run.report.superseded = true;
            }
        }
        run.counts.passed_tests = Vec::new();
        if self.runs.len() >= MAX_RUNS {
            self.drop_one_run();
        }
        self.runs.push(run);
    }

    /// Drops a superseded run if there is one, otherwise the oldest.
    fn drop_one_run(&mut self) {
        let at = self.runs.iter().position(|run| run.report.superseded).unwrap_or(0);
        let run = self.runs.remove(at);
        if run.is_current() {
            add_counts(&mut self.dropped, &run.counts);
        }
    }

    pub(super) fn report(&self) -> Option<TestReport> {
        let mut sums = self.dropped.clone();
        let current = self.runs.iter().filter(|run| run.is_current());
        current.clone().for_each(|run| add_counts(&mut sums, &run.counts));
        let listed = &self.runs[self.runs.len().saturating_sub(MAX_LISTED_RUNS)..];
        let report = TestReport {
            passed: sums.passed,
            failed: sums.failed,
            skipped: sums.skipped,
            failed_tests_not_listed: sums.failed.saturating_sub(sums.failed_tests.0.len() as u64),
            failed_tests: sums.failed_tests.0,
            incomplete: sums.is_partial,
            ended_badly: current.clone().any(|run| run.report.ended_badly),
            runs: listed.iter().map(|run| run.report.clone()).collect(),
        };
        (!self.runs.is_empty()).then_some(report)
    }
}

fn add_counts(sums: &mut RunCounts, more: &RunCounts) {
    sums.add(more.passed, more.failed, more.skipped);
    sums.is_partial |= more.is_partial;
    let remaining = MAX_NAMES.saturating_sub(sums.failed_tests.0.len());
    sums.failed_tests.0.extend(more.failed_tests.0.iter().take(remaining).cloned());
}

impl Run {
    fn new(
        script: &str,
        runner: Runner,
        selectors: Vec<String>,
        exit_code: Option<i32>,
        counts: RunCounts,
    ) -> Self {
        let report = TestRunReport {
            command: beginning(script, MAX_SHOWN_COMMAND_BYTES).to_owned(),
            runner,
            exit_code,
            passed: counts.passed,
            failed: counts.failed,
            skipped: counts.skipped,
            incomplete: counts.is_partial,
            ended_badly: counts.failed == 0 && exit_code.is_some_and(|code| code != 0),
            superseded: false,
        };
        Self { report, selectors, counts }
    }

    fn is_current(&self) -> bool {
        !self.report.superseded
    }

    /// Whether this run includes all tests of the other: every selector narrows a run.
    fn covers(&self, other: &Run) -> bool {
        let (ours, theirs) = (self.report.runner, other.report.runner);
        // Nextest does not run doctests.
        let are_doctests = |run: &Run| run.selectors.iter().any(|word| word == "--doc");
        let is_comparable = ours == theirs
            || (ours.runs_same_tests_as(theirs) && !are_doctests(self) && !are_doctests(other));
        is_comparable && self.selectors.iter().all(|word| other.selectors.contains(word))
    }

    /// Applies the results of a later, narrower run to the tests that it names.
    fn apply_later_run(&mut self, later: &Run) {
        let all_passed = later.counts.failed == 0 && later.counts.passed > 0 && !later.report.ended_badly;
        let narrowing: Vec<&str> = later
            .selectors
            .iter()
            .filter(|word| !self.selectors.contains(word))
            .map(|word| selector_value(word))
            .collect();
        let counts = &mut self.counts;
        let before = counts.failed_tests.0.len();
        counts.failed_tests.0.retain(|name| {
            let is_chosen = all_passed && narrowing.iter().any(|word| is_same_test(word, name));
            !(is_chosen || later.counts.passed_tests.iter().any(|passed| is_same_test(passed, name)))
        });
        let now_passing = (before - counts.failed_tests.0.len()) as u64;
        counts.failed = counts.failed.saturating_sub(now_passing);
        counts.passed = counts.passed.saturating_add(now_passing);
        for name in &later.counts.failed_tests.0 {
            if counts.failed_tests.0.iter().any(|known| is_same_test(name, known)) {
                continue;
            }
            counts.passed = counts.passed.saturating_sub(1);
            counts.failed = counts.failed.saturating_add(1);
            if counts.failed_tests.0.len() < MAX_NAMES {
                counts.failed_tests.0.push(name.clone());
            }
        }
    }
}

/// `-run=^TestX$` → `TestX`
fn selector_value(word: &str) -> &str {
    let word =
        word.split_once('=').filter(|(flag, _)| flag.starts_with('-')).map_or(word, |(_, value)| value);
    word.trim_start_matches('^').trim_end_matches('$')
}

/// Whether two texts name the same test; nextest prepends the binary, Jest puts arrows between the parts.
fn is_same_test(text: &str, name: &str) -> bool {
    let ends_with =
        |long: &str, short: &str| long.strip_suffix(short).is_some_and(|start| start.ends_with(' '));
    let is_in_rust = |text: &str| text.contains("::");
    text == name
        || (is_in_rust(text) && is_in_rust(name) && (ends_with(name, text) || ends_with(text, name)))
        || (name.contains(" › ") && name.replace(" › ", " ") == text)
}
