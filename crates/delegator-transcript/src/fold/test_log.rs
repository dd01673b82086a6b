//! Test runs, folded into how the tests stand in the end.
//!
//! A run is what one runner told in the output of one command. It is known by its runner and by what it asked for
//! (see [`crate::test_runs::command`]), and the latest word counts:
//!
//! - The last run of the same tests replaces the earlier ones, also if it ended badly and counted nothing: a suite
//!   that no longer builds does not pass.
//! - A run that asks for more (`pytest` after `pytest tests/a.py`) replaces those that asked for less.
//! - A run that asks for less (`cargo test parser` after `cargo test`) is not added, for its tests are counted already.
//!   But what it says of them by name is the newer truth: a test that had failed and now passes is passed, one that
//!   fails now is failed. A test is also named by the very word that chose it alone.
//! - Runs of which neither asked for the other's tests are summed.
//!
//! Runners that run the same tests (`cargo test` and `cargo nextest run`) are compared as one. Declined commands ran
//! nothing. The figures are at least so many where a runner does not count, see [`crate::test_runs`].

use serde::Serialize;

use super::kept::KeptText;
use crate::event::CommandExecution;
use crate::json::Text;
use crate::shell;
use crate::test_runs::command::Command;
use crate::test_runs::{self, MOST_NAMES, Reading, Runner};

/// Runs compared with at most; of older ones only the sums are known.
const MOST_RUNS: usize = 128;
/// Runs that are listed, the last ones.
const MOST_LISTED: usize = 32;
const LONGEST_COMMAND: usize = 2 << 10;
/// Bytes of output that cost more to search than the command costs to be taken apart.
const WORTH_A_LOOK: u64 = 8 << 10;
/// Of the command of a run that is listed.
const LONGEST_SHOWN: usize = 300;

/// How the tests stand in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TestReport {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, and files or packages with tests that could not be run.
    pub failed: u64,
    /// Tests that were skipped, ignored, pending or expected to fail.
    pub skipped: u64,
    /// The first hundred of the failed ones, each name at most 300 bytes; not every runner names them.
    pub failed_tests: Vec<String>,
    /// Failed ones that are not among these.
    pub failed_tests_not_listed: u64,
    /// Tests ran that are not counted: the figures are at least so many.
    pub incomplete: bool,
    /// A command ended with another code than 0 though it counted no failed test: not all is well.
    pub ended_badly: bool,
    /// The last runs, oldest first.
    pub runs: Vec<TestRunReport>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TestRunReport {
    /// Without a shell's wrapper; at most 300 bytes.
    pub command: String,
    /// Who ran the tests.
    pub runner: Runner,
    /// Of the command, which is a pipe's last one where there is a pipe.
    pub exit_code: Option<i32>,
    /// As told.
    pub passed: u64,
    /// As told.
    pub failed: u64,
    /// As told.
    pub skipped: u64,
    /// Tests ran that are not counted.
    pub incomplete: bool,
    /// It ended with another code than 0 though it counted no failed test.
    pub ended_badly: bool,
    /// Another run tells of the same tests: not in the sums.
    pub superseded: bool,
}

#[derive(Debug, Default)]
pub(super) struct TestLog {
    runs: Vec<Run>,
    /// The sums of runs that are too old to be compared with.
    forgotten: Reading,
}

#[derive(Debug)]
struct Run {
    /// As told; `stands` is what later runs made of it.
    told: TestRunReport,
    asked: Vec<String>,
    stands: Reading,
}

/// What one command of our own tells of tests.
pub fn test_report(command: &str, output: &str, exit_code: Option<i32>) -> Option<TestReport> {
    let mut log = TestLog::default();
    let ended = CommandExecution {
        command: Text::plain(command),
        output: Text::plain(output),
        output_tail: None,
        output_bytes: output.len() as u64,
        exit_code,
    };
    log.finish(&ended, None);
    log.report()
}

impl TestLog {
    /// Takes note of a command that ended.
    pub(super) fn finish(&mut self, command: &CommandExecution<'_>, workdir: Option<&str>) {
        let rest = command.output_tail.as_ref();
        let has_failed = command.exit_code.is_some_and(|code| code != 0);
        let take_apart = || {
            let line = KeptText::of(&command.command, LONGEST_COMMAND).resolve();
            (Command::new(&line, workdir), line)
        };
        // A long text is not even searched if it is only shown.
        let known = (command.output_bytes > WORTH_A_LOOK).then(take_apart);
        if known.as_ref().is_some_and(|(command, _)| command.only_shows_texts()) {
            return;
        }
        let may_be_told = test_runs::may_be_told(&command.output, rest);
        // Most commands end here.
        if !may_be_told && (self.runs.is_empty() || !has_failed) {
            return;
        }
        let (taken_apart, line) = known.unwrap_or_else(take_apart);
        let read =
            if may_be_told { test_runs::read(&taken_apart, &command.output, rest) } else { Vec::new() };
        let is_silent = read.is_empty();
        // The exit code is the whole command's: where one runner counted a failure, it says nothing of the others.
        let is_explained = read.iter().any(|(_, reading)| reading.failed > 0);
        for (runner, reading) in read {
            let mut run = Run::new(&line, runner, taken_apart.asked_for(runner), command.exit_code, reading);
            run.told.ended_badly &= !is_explained;
            self.add(run);
        }
        let silent = taken_apart.names_runner().filter(|_| is_silent && has_failed);
        if let Some(runner) = silent {
            let blank = Reading { is_partial: true, ..Reading::default() };
            let run = Run::new(&line, runner, taken_apart.asked_for(runner), command.exit_code, blank);
            // It counted nothing: it matters only if it replaces something.
            if self.runs.iter().any(|earlier| earlier.is_current() && run.asks_for_all_of(earlier)) {
                self.add(run);
            }
        }
    }

    fn add(&mut self, mut run: Run) {
        for earlier in self.runs.iter_mut().filter(|earlier| earlier.is_current()) {
            if run.asks_for_all_of(earlier) {
                earlier.told.superseded = true;
            } else if earlier.asks_for_all_of(&run) && !earlier.stands.counts_nothing() {
                earlier.learn_from(&run);
                run.told.superseded = true;
            }
        }
        run.stands.passed_tests = Vec::new();
        if self.runs.len() >= MOST_RUNS {
            self.forget_one();
        }
        self.runs.push(run);
    }

    /// One that no longer counts if there is one, otherwise the oldest.
    fn forget_one(&mut self) {
        let at = self.runs.iter().position(|run| run.told.superseded).unwrap_or(0);
        let run = self.runs.remove(at);
        if run.is_current() {
            add(&mut self.forgotten, &run.stands);
        }
    }

    pub(super) fn report(&self) -> Option<TestReport> {
        let mut sums = self.forgotten.clone();
        let current = self.runs.iter().filter(|run| run.is_current());
        current.clone().for_each(|run| add(&mut sums, &run.stands));
        let listed = &self.runs[self.runs.len().saturating_sub(MOST_LISTED)..];
        let report = TestReport {
            passed: sums.passed,
            failed: sums.failed,
            skipped: sums.skipped,
            failed_tests_not_listed: sums.failed.saturating_sub(sums.failed_tests.0.len() as u64),
            failed_tests: sums.failed_tests.0,
            incomplete: sums.is_partial,
            ended_badly: current.clone().any(|run| run.told.ended_badly),
            runs: listed.iter().map(|run| run.told.clone()).collect(),
        };
        (!self.runs.is_empty()).then_some(report)
    }
}

fn add(sums: &mut Reading, more: &Reading) {
    sums.passed = sums.passed.saturating_add(more.passed);
    sums.failed = sums.failed.saturating_add(more.failed);
    sums.skipped = sums.skipped.saturating_add(more.skipped);
    sums.is_partial |= more.is_partial;
    let room = MOST_NAMES.saturating_sub(sums.failed_tests.0.len());
    sums.failed_tests.0.extend(more.failed_tests.0.iter().take(room).cloned());
}

impl Run {
    fn new(line: &str, runner: Runner, asked: Vec<String>, exit_code: Option<i32>, reading: Reading) -> Self {
        let command = shell::unwrap(line);
        let shown = command.get(..command.floor_char_boundary(LONGEST_SHOWN)).unwrap_or_default();
        let told = TestRunReport {
            command: shown.to_owned(),
            runner,
            exit_code,
            passed: reading.passed,
            failed: reading.failed,
            skipped: reading.skipped,
            incomplete: reading.is_partial,
            ended_badly: reading.failed == 0 && exit_code.is_some_and(|code| code != 0),
            superseded: false,
        };
        Self { told, asked, stands: reading }
    }

    fn is_current(&self) -> bool {
        !self.told.superseded
    }

    /// Whether the tests of the other are among those of this one: every word narrows the choice.
    fn asks_for_all_of(&self, other: &Run) -> bool {
        let (ours, theirs) = (self.told.runner, other.told.runner);
        // Nextest runs no doctests.
        let are_doctests = |run: &Run| run.asked.iter().any(|word| word == "--doc");
        let is_comparable =
            ours == theirs || (ours.is_kin_of(theirs) && !are_doctests(self) && !are_doctests(other));
        is_comparable && self.asked.iter().all(|word| other.asked.contains(word))
    }

    /// Takes over what a later run says of single tests of this one.
    fn learn_from(&mut self, later: &Run) {
        let all_passed = later.stands.failed == 0 && later.stands.passed > 0 && !later.told.ended_badly;
        let choosing: Vec<&str> =
            later.asked.iter().filter(|word| !self.asked.contains(word)).map(|word| bare(word)).collect();
        let stands = &mut self.stands;
        let before = stands.failed_tests.0.len();
        stands.failed_tests.0.retain(|name| {
            let is_chosen = all_passed && choosing.iter().any(|word| is_name(word, name));
            !(is_chosen || later.stands.passed_tests.iter().any(|passed| is_name(passed, name)))
        });
        let mended = (before - stands.failed_tests.0.len()) as u64;
        stands.failed = stands.failed.saturating_sub(mended);
        stands.passed = stands.passed.saturating_add(mended);
        for name in &later.stands.failed_tests.0 {
            if stands.failed_tests.0.iter().any(|known| is_name(name, known)) {
                continue;
            }
            stands.passed = stands.passed.saturating_sub(1);
            stands.failed = stands.failed.saturating_add(1);
            if stands.failed_tests.0.len() < MOST_NAMES {
                stands.failed_tests.0.push(name.clone());
            }
        }
    }
}

/// `-run=^TestX$` → `TestX`
fn bare(word: &str) -> &str {
    let word =
        word.split_once('=').filter(|(flag, _)| flag.starts_with('-')).map_or(word, |(_, value)| value);
    word.trim_start_matches('^').trim_end_matches('$')
}

/// Whether two texts are the same test's name; nextest puts the binary before it, jest arrows between its parts.
fn is_name(text: &str, name: &str) -> bool {
    let ends_with =
        |long: &str, short: &str| long.strip_suffix(short).is_some_and(|start| start.ends_with(' '));
    let is_in_rust = |text: &str| text.contains("::");
    text == name
        || (is_in_rust(text) && is_in_rust(name) && (ends_with(name, text) || ends_with(text, name)))
        || (name.contains(" › ") && name.replace(" › ", " ") == text)
}
