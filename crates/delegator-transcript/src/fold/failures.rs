//! Tracks the commands that failed, with the errors and locations in their output.
//!
//! Only the last run of a command counts: a later run replaces the earlier failure, and a successful run
//! removes it. Two runs are of the same command if their scripts are equal except for white space and a final
//! `2>&1`. A pipe is part of the script, because the exit code of `cargo test | tail` says nothing about
//! `cargo test`. An output is therefore stored and parsed once, when a report is requested; most are replaced
//! before. Only a very long output is parsed at once, so that memory stays bounded.
//!
//! Some programs return an answer in their exit code: exit code 1 of `grep` or `diff` is no failure, unless
//! the output contains an error with a location.

use std::cell::OnceCell;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::bounded_text::BoundedText;
use super::finished_command::FinishedCommand;
use crate::error_locations::{ErrorLocation, ParsedErrors, parse};
use crate::shell;
use crate::test_runs::command::{ParsedCommand, is_assignment, is_one_of};

const MAX_FAILURES: usize = 20;
/// Longer outputs are parsed when the command ends, instead of being stored.
const MAX_STORED_OUTPUT_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandFailure {
    /// As the agent gave it, without the shell wrapper; at most 2 KiB. Empty if the agent itself failed.
    pub command: String,
    /// Absent if the agent reported only the failure.
    pub exit_code: Option<i32>,
    /// The most informative line of the output, at most 300 characters; empty if there was no output.
    pub message: String,
    /// The error code or type: `E0308`, `TypeError`.
    pub kind: Option<String>,
    /// The locations in the output, in order; at most 20.
    pub places: Vec<ErrorLocation>,
    /// The directory that the script changed to with `cd`. A relative path of a location may start there or
    /// in the agent's working directory: compilers differ, and only a caller with access to the files can
    /// decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Failures {
    list: VecDeque<Failure>,
}

#[derive(Debug)]
struct Failure {
    script: String,
    exit_code: Option<i32>,
    /// The output until it is parsed; empty if it was too long to be stored.
    output: BoundedText,
    output_tail: Option<BoundedText>,
    errors: OnceCell<ParsedErrors>,
}

impl Failures {
    pub(super) fn record(&mut self, command: &FinishedCommand<'_, '_>) {
        // Declined commands did not run; successful ones matter only if there is a failure to remove.
        if command.is_declined() || (!command.is_failure() && self.list.is_empty()) {
            return;
        }
        self.list.retain(|known| !is_same_script(&known.script, command.script()));
        if !command.is_failure() {
            return;
        }
        let failure = Failure::new(command);
        if failure.exit_code == Some(1)
            && answers_by_exit_code(&last_program(&failure.script))
            && failure.errors(command.workdir).locations.is_empty()
        {
            return;
        }
        if self.list.len() >= MAX_FAILURES {
            self.list.pop_front();
        }
        self.list.push_back(failure);
    }

    pub(super) fn report(&self, workdir: Option<&str>) -> Vec<CommandFailure> {
        self.list.iter().map(|failure| failure.report(workdir)).collect()
    }
}

impl Failure {
    fn new(command: &FinishedCommand<'_, '_>) -> Self {
        let (output, tail) = (&command.execution.output, command.execution.output_tail.as_ref());
        let script = command.script().to_owned();
        let exit_code = command.execution.exit_code;
        let bytes = output.stored().0.len() + tail.map_or(0, |tail| tail.stored().0.len());
        if bytes > MAX_STORED_OUTPUT_BYTES {
            let tail = tail.map(|tail| tail.resolve());
            let is_error = plain_lines_are_errors(&script);
            let errors = parse(&output.resolve(), tail.as_deref(), command.workdir, is_error);
            let (output, errors) = (BoundedText::default(), OnceCell::from(errors));
            return Self { script, exit_code, output, output_tail: None, errors };
        }
        let store = |text| BoundedText::new(text, MAX_STORED_OUTPUT_BYTES);
        let (output, output_tail) = (store(output), tail.map(store));
        Self { script, exit_code, output, output_tail, errors: OnceCell::new() }
    }

    fn errors(&self, workdir: Option<&str>) -> &ParsedErrors {
        self.errors.get_or_init(|| {
            let tail = self.output_tail.as_ref().map(BoundedText::resolve);
            let is_error = plain_lines_are_errors(&self.script);
            parse(&self.output.resolve(), tail.as_deref(), workdir, is_error)
        })
    }

    fn report(&self, workdir: Option<&str>) -> CommandFailure {
        let ParsedErrors { locations, message, kind } = self.errors(workdir).clone();
        let directory = ParsedCommand::from_script(&self.script, workdir).directory;
        let (command, exit_code) = (self.script.clone(), self.exit_code);
        CommandFailure { command, exit_code, message, kind, places: locations, directory }
    }
}

fn is_same_script(left: &str, right: &str) -> bool {
    fn words(script: &str) -> std::str::SplitWhitespace<'_> {
        let script = script.trim_end();
        script.strip_suffix("2>&1").unwrap_or(script).split_whitespace()
    }
    words(left).eq(words(right))
}

/// The first two words of the last command of a script, which determines the exit code, without assignments
/// and wrappers before them.
fn last_program(script: &str) -> [String; 2] {
    let last = shell::pipelines(script).pop().and_then(|mut pipeline| pipeline.0.pop()).unwrap_or_default();
    let is_prefix = |word: &&String| is_assignment(word) || matches!(word.as_str(), "sudo" | "time" | "exec");
    let mut words = last.iter().skip_while(is_prefix);
    [(); 2].map(|()| words.next().and_then(|word| word.rsplit('/').next()).unwrap_or_default().to_owned())
}

/// False for scripts that print existing text.
fn plain_lines_are_errors(script: &str) -> bool {
    const TEXT_PROGRAMS: &str =
        "grep egrep fgrep rg ag ack cat sed awk head tail less nl find fd ls echo diff cmp jq git";
    let [program, _] = last_program(script);
    !is_one_of(&program, TEXT_PROGRAMS)
}

fn answers_by_exit_code([program, subcommand]: &[String; 2]) -> bool {
    match program.as_str() {
        "command" => is_one_of(subcommand, "-v -V"),
        "git" => is_one_of(subcommand, "grep diff show-ref check-ignore merge-base rev-parse"),
        _ => is_one_of(
            program,
            "grep egrep fgrep zgrep rg ag ack diff cmp test [ [[ which type pgrep pidof expr",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CommandExecution, ItemStatus};
    use crate::json::Text;

    fn run(failures: &mut Failures, command: &'static str, exit_code: i32, output: &'static str) {
        let command = CommandExecution {
            command: Text::plain(command),
            output: Text::plain(output),
            exit_code: Some(exit_code),
            ..CommandExecution::default()
        };
        let status = if exit_code == 0 { ItemStatus::Completed } else { ItemStatus::Failed };
        failures.record(&FinishedCommand::new(&command, status, Some("/w")));
    }

    fn descriptions(failures: &Failures) -> Vec<String> {
        failures
            .report(Some("/w"))
            .into_iter()
            .map(|failure| format!("{}: {}", failure.command, failure.message))
            .collect()
    }

    #[test]
    fn the_last_run_of_a_command_counts() {
        let mut failures = Failures::default();
        run(&mut failures, "bash -lc 'cargo build'", 101, "error: first\n");
        run(&mut failures, "cargo test", 101, "error: other\n");
        run(&mut failures, "bash -lc 'cargo  build 2>&1'", 101, "error: second\n");
        assert_eq!(descriptions(&failures), ["cargo test: error: other", "cargo  build 2>&1: error: second"]);
        run(&mut failures, "cargo build", 0, "");
        assert_eq!(descriptions(&failures), ["cargo test: error: other"]);
        // A pipe hides the exit code.
        run(&mut failures, "cargo test | tail -3", 0, "");
        assert_eq!(descriptions(&failures).len(), 1);
        run(&mut failures, "cargo test", 0, "");
        assert_eq!(descriptions(&failures), [""; 0]);
    }

    #[test]
    fn the_directory_of_a_cd_is_reported() {
        let mut failures = Failures::default();
        run(&mut failures, "cargo build", 101, "error: first\n");
        run(&mut failures, "bash -lc 'cd /w/web && npm run build'", 1, "error: second\n");
        let directories: Vec<Option<String>> =
            failures.report(Some("/w")).into_iter().map(|failure| failure.directory).collect();
        assert_eq!(directories, [None, Some("web".to_owned())]);
    }

    #[test]
    fn exit_code_1_of_grep_and_diff_is_no_failure() {
        let mut failures = Failures::default();
        for script in [
            "grep -n x y",
            "cd src && rg x",
            "cat x | grep 'a;b'",
            "diff a b",
            "test -f x",
            "[ -f x ]",
            "git diff --exit-code",
            "command -v cargo",
            "! LC_ALL=C /usr/bin/grep x y",
            "grep -n x y 2>&1",
        ] {
            run(&mut failures, script, 1, "");
            assert_eq!(descriptions(&failures), [""; 0], "{script}");
        }
        // A search that found something and then could not read a file: its matches are not errors.
        run(&mut failures, "rg x", 2, "src/a.rs:3:5:let x = 1;\nrg: b: Permission denied\n");
        assert_eq!(failures.report(Some("/w"))[0].places, []);
        assert_eq!(descriptions(&failures), ["rg x: rg: b: Permission denied"]);
        run(&mut failures, "grep-like-tool x", 1, "");
        assert_eq!(descriptions(&failures).len(), 2);
    }

    #[test]
    fn declined_commands_change_nothing_and_the_list_is_bounded() {
        let mut failures = Failures::default();
        for number in 0..50 {
            let command = CommandExecution {
                command: Text::owned(format!("make {number}")),
                exit_code: Some(2),
                ..CommandExecution::default()
            };
            failures.record(&FinishedCommand::new(&command, ItemStatus::Failed, None));
            failures.record(&FinishedCommand::new(&command, ItemStatus::Declined, None));
        }
        let commands: Vec<String> =
            failures.report(Some("/w")).into_iter().map(|failure| failure.command).collect();
        assert_eq!((commands.len(), commands[0].as_str()), (MAX_FAILURES, "make 30"));
    }
}
