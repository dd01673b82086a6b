//! Whether a read-only task tried to write, and how to let it.
//!
//! Decided from what the agent reported: a patch that its sandbox refused, a patch that failed, or a failed
//! command that got the system's error for a read-only file system. A command that printed this error and
//! succeeded may only have shown a text with it, so that is reported as a possibility. A failure of another
//! kind is no attempt to write.

use delegator_domain::task::Mode;
use delegator_engine::is_refused_write;
use delegator_transcript::CommandReport;

use crate::output::prelude::*;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DeniedWrite {
    pub reason: &'static str,
    /// How to let the agent write.
    pub suggestion: String,
}

/// How sure it is that the agent tried to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Certain,
    Possible,
}

impl Attempt {
    fn reason(self) -> &'static str {
        match self {
            Attempt::Certain => "The agent tried to write, which mode read-only does not allow.",
            Attempt::Possible => {
                "A command printed the error of a read-only file system: the agent may have tried to write, which mode \
                 read-only does not allow."
            }
        }
    }
}

const CONTINUE: &str = "Go on. You may write now.";

pub fn of_task(
    task: &Task,
    record: Option<&Record>,
    max_mode: Mode,
    syntax: CallSyntax<'_>,
) -> Option<DeniedWrite> {
    let attempt = record.filter(|_| task.mode == Mode::ReadOnly).and_then(attempt_to_write)?;
    let mode = Mode::WorkspaceWrite.name();
    let suggestion = match &task.thread_id {
        _ if task.remote.is_some() => Suggestion::from(format!(
            "If it may write, set the mode of its environment to {mode} and submit it again."
        )),
        _ if max_mode < Mode::WorkspaceWrite => Suggestion::with_call(
            "max_mode does not allow writing. The user must raise it in their own configuration first; \
             where it is set: {call}",
            NextCall::new(&["config", "show"]).with("key", "max_mode"),
        ),
        Some(_) => Suggestion::with_call(
            "If it may write in its directory, continue it: {call}",
            NextCall::new(&["local", "resume"])
                .with("task", CONTINUE)
                .with("task_id", task.id.as_str())
                .with("mode", mode),
        ),
        None => Suggestion::with_call(
            "If it may write in its directory, start it again: {call}",
            NextCall::for_task(&["retry"], task.id.as_str()).with("mode", mode),
        ),
    };
    Some(DeniedWrite { reason: attempt.reason(), suggestion: syntax.sentence(&suggestion) })
}

fn attempt_to_write(record: &Record) -> Option<Attempt> {
    let report = &record.report;
    let is_certain = report.files.failed_patches > 0
        || record.refused.last.iter().any(|message| is_refused_write(message));
    let by_commands = || report.commands.list.iter().filter_map(attempt_by_command);
    if is_certain || by_commands().any(|attempt| attempt == Attempt::Certain) {
        Some(Attempt::Certain)
    } else {
        by_commands().next()
    }
}

fn attempt_by_command(command: &CommandReport) -> Option<Attempt> {
    let mut lines = command.output_head.lines().chain(command.output_tail.lines()).map(str::trim_end);
    match command.exit_code? {
        0 => lines.any(is_error_of_a_program).then_some(Attempt::Possible),
        _ => lines.any(is_read_only_error).then_some(Attempt::Certain),
    }
}

/// The error EROFS as shells and C programs print it: `program: …: Read-only file system`. Not a line that a
/// search found, which begins with `path:line:`.
fn is_error_of_a_program(line: &str) -> bool {
    let begins_with_program =
        line.split_once(": ").is_some_and(|(program, _)| !program.contains([' ', '\t', ':', '"', '\'']));
    begins_with_program && line.ends_with(": Read-only file system")
}

/// The error EROFS as shells and C programs, Go, Rust, Python and Node print it: with the failed operation
/// before it.
fn is_read_only_error(line: &str) -> bool {
    [": Read-only file system", ": read-only file system"].iter().any(|end| line.ends_with(end))
        || [
            "Read-only file system (os error 30)",
            "[Errno 30] Read-only file system",
            "EROFS: read-only file system",
        ]
        .iter()
        .any(|error| line.contains(error))
}

impl DeniedWrite {
    /// What the task was not allowed to do, and how to let it.
    pub fn block(&self) -> Block {
        Block::facts([
            ("write access", Some(self.reason.to_owned())),
            ("suggestion", Some(self.suggestion.clone())),
        ])
    }
}

#[cfg(test)]
mod tests {
    use delegator_transcript::ItemStatus;

    use super::*;

    fn command(exit_code: i32, output: &str) -> CommandReport {
        CommandReport {
            command: "x".to_owned(),
            status: ItemStatus::Failed,
            exit_code: Some(exit_code),
            output_bytes: output.len() as u64,
            output_head: output.to_owned(),
            output_tail: String::new(),
        }
    }

    #[test]
    fn a_failed_command_with_the_error_of_a_read_only_file_system_tried_to_write() {
        for output in [
            "/bin/bash: line 1: x.txt: Read-only file system\n",
            "sed: couldn't open temporary file ./sedhnGAyA: Read-only file system",
            "fatal: Unable to create '/p/.git/index.lock': Read-only file system\nmore",
            "error: failed to open: Read-only file system (os error 30)\n\nCaused by: x",
            "OSError: [Errno 30] Read-only file system: '/p/q'",
            "Error: EROFS: read-only file system, open 'x'",
            "open /p/go.sum: read-only file system",
        ] {
            assert_eq!(attempt_by_command(&command(1, output)), Some(Attempt::Certain), "{output}");
        }
        for output in [
            "",
            "cat: /nonexist: No such file or directory",
            "touch: cannot touch '/etc/x': Permission denied",
            "echo: write error: No space left on device",
            "the docs mention a Read-only file system in passing",
        ] {
            assert_eq!(attempt_by_command(&command(1, output)), None, "{output}");
        }
    }

    #[test]
    fn a_command_that_succeeded_with_the_error_of_a_program_may_have_tried_to_write() {
        for output in [
            "/bin/bash: line 1: x.txt: Read-only file system\n",
            "start\ntouch: cannot touch 'x': Read-only file system\ndone\n",
        ] {
            assert_eq!(attempt_by_command(&command(0, output)), Some(Attempt::Possible), "{output}");
        }
        for output in [
            "docs/errors.md:12:touch: cannot touch 'x': Read-only file system",
            "    \"touch: cannot touch 'x': Read-only file system",
            "    [\": Read-only file system\", \": read-only file system\"]",
            "a Read-only file system",
            "touch: cannot touch 'x': Permission denied",
        ] {
            assert_eq!(attempt_by_command(&command(0, output)), None, "{output}");
        }
    }
}
