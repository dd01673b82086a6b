//! Commands that failed, and what they complained about.
//!
//! What a command printed is read once, when it ends, and only if it failed. The last run of a command counts: a
//! later run of the same command takes the place of the earlier failure, and one that goes well takes it away. Two
//! runs are of the same command if their scripts are, but for white space and where the errors are sent. A pipe is
//! part of the script: how `cargo test | tail` ended says nothing of `cargo test`.
//!
//! Some programs answer a question with their exit code. Code 1 of `grep` or `diff` is an answer and no failure, as
//! long as nothing in the output is an error with a place.

use std::collections::VecDeque;

use serde::Serialize;

use super::bounded_text::BoundedText;
use super::commands::is_failure;
use crate::error_locations::{ErrorLocation, PlainLines, parse};
use crate::event::{CommandExecution, ItemStatus};
use crate::shell;
use crate::test_runs::command::ParsedCommand;

const MAX_FAILURES: usize = 20;
const MAX_COMMAND_BYTES: usize = 2 << 10;

/// A command that failed, for as long as it was not made to succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandFailure {
    /// As the agent gave it, without a shell's wrapper; at most 2 KiB.
    pub command: String,
    /// Absent where the agent only said that it failed.
    pub exit_code: Option<i32>,
    /// The most telling line of what it printed, at most 300 characters; empty if it printed nothing.
    pub message: String,
    /// What kind of error that is: `E0308`, `TypeError`.
    pub kind: Option<String>,
    /// What it complained about, in the order it did; at most twenty places.
    pub places: Vec<ErrorLocation>,
    /// Where its script had gone with `cd`. A relative path of a place may begin there, or where the agent works: compilers
    /// differ in that, and only who can look at the files can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Failures {
    list: VecDeque<CommandFailure>,
}

impl Failures {
    pub(super) fn record(
        &mut self,
        command: &CommandExecution<'_>,
        status: ItemStatus,
        workdir: Option<&str>,
    ) {
        let has_failed = is_failure(status, command.exit_code);
        // What was declined did not run; what went well matters only where something had gone wrong.
        if status == ItemStatus::Declined || (!has_failed && self.list.is_empty()) {
            return;
        }
        let script = shell::unwrap(&BoundedText::new(&command.command, MAX_COMMAND_BYTES).resolve());
        self.list.retain(|known| !is_same_script(&known.command, &script));
        if !has_failed {
            return;
        }
        let program = last_program(&script);
        let plain = if prints_text(&program) { PlainLines::AreContent } else { PlainLines::AreErrors };
        let tail = command.output_tail.as_ref().map(|tail| tail.resolve());
        let parsed = parse(&command.output.resolve(), tail.as_deref(), workdir, plain);
        if command.exit_code == Some(1) && parsed.locations.is_empty() && answers_by_exit_code(&program) {
            return;
        }
        if self.list.len() >= MAX_FAILURES {
            self.list.pop_front();
        }
        let directory = ParsedCommand::new(&script, workdir).directory().map(str::to_owned);
        self.list.push_back(CommandFailure {
            command: script,
            exit_code: command.exit_code,
            message: parsed.message,
            kind: parsed.kind,
            places: parsed.locations,
            directory,
        });
    }

    pub(super) fn report(&self) -> Vec<CommandFailure> {
        self.list.iter().cloned().collect()
    }
}

/// Whether two scripts are the same but for white space and `2>&1` at the end.
fn is_same_script(left: &str, right: &str) -> bool {
    fn words(script: &str) -> std::str::SplitWhitespace<'_> {
        let script = script.trim_end();
        script.strip_suffix("2>&1").unwrap_or(script).split_whitespace()
    }
    words(left).eq(words(right))
}

/// The first two words of the last command of a script: the one whose exit code it has.
fn last_program(script: &str) -> Vec<String> {
    let last = shell::pipelines(script).pop().and_then(|mut pipeline| pipeline.0.pop()).unwrap_or_default();
    let words = last.iter().skip_while(|word| is_prefix(word));
    words.take(2).map(|word| word.rsplit('/').next().unwrap_or_default().to_owned()).collect()
}

/// `A=b sudo grep`
fn is_prefix(word: &str) -> bool {
    let is_assignment = word
        .split_once('=')
        .is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
    is_assignment || matches!(word, "sudo" | "time" | "exec")
}

/// Programs whose output is other text, in which `path:line:column` is no complaint.
fn prints_text(program: &[String]) -> bool {
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    matches!(
        words.as_slice(),
        [
            "grep"
                | "egrep"
                | "fgrep"
                | "rg"
                | "ag"
                | "ack"
                | "cat"
                | "sed"
                | "awk"
                | "head"
                | "tail"
                | "less",
            ..
        ] | ["nl" | "find" | "fd" | "ls" | "echo" | "diff" | "cmp" | "jq" | "git", ..]
    )
}

fn answers_by_exit_code(program: &[String]) -> bool {
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    matches!(
        words.as_slice(),
        [
            "grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "ag" | "ack" | "diff" | "cmp" | "test" | "[" | "[[",
            ..
        ] | ["which" | "type" | "pgrep" | "pidof" | "expr", ..]
            | ["command", "-v" | "-V"]
            | ["git", "grep" | "diff" | "show-ref" | "check-ignore" | "merge-base" | "rev-parse"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Text;

    fn run(failures: &mut Failures, command: &'static str, exit_code: i32, output: &'static str) {
        let command = CommandExecution {
            command: Text::plain(command),
            output: Text::plain(output),
            exit_code: Some(exit_code),
            ..CommandExecution::default()
        };
        let status = if exit_code == 0 { ItemStatus::Completed } else { ItemStatus::Failed };
        failures.record(&command, status, Some("/w"));
    }

    fn descriptions(failures: &Failures) -> Vec<String> {
        failures
            .report()
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
        // A pipe hides how it ended.
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
            failures.report().into_iter().map(|failure| failure.directory).collect();
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
        // A search that found something and then could not read a file: what it found is not wrong.
        run(&mut failures, "rg x", 2, "src/a.rs:3:5:let x = 1;\nrg: b: Permission denied\n");
        assert_eq!(failures.report()[0].places, []);
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
            failures.record(&command, ItemStatus::Failed, None);
            failures.record(&command, ItemStatus::Declined, None);
        }
        let commands: Vec<String> = failures.report().into_iter().map(|failure| failure.command).collect();
        assert_eq!((commands.len(), commands[0].as_str()), (MAX_FAILURES, "make 30"));
    }
}
