//! Records the commands that the agent ran and how they ended.
//!
//! Counts are exact. The last [`MAX_COMMANDS`] commands are listed, the last [`MAX_OUTPUTS`] of them with the
//! beginning and end of their output. Test results are parsed from the full output when the command ends.
//! Buffers of dropped entries are reused, so memory does not grow with the session.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::bounded_text::{BoundedText, HeadAndTail};
use super::finished_command::{FinishedCommand, MAX_COMMAND_BYTES};
use super::test_log::{TestLog, TestReport};
use crate::event::ItemStatus;
use crate::shell;

const MAX_COMMANDS: usize = 200;
const MAX_OUTPUTS: usize = 32;
const OUTPUT_HEAD_BYTES: usize = 1 << 10;
const OUTPUT_TAIL_BYTES: usize = 7 << 10;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// Commands that ran and ended, with any result.
    pub finished: u64,
    /// The finished commands with a non-zero exit code or the status `failed`.
    pub failed: u64,
    /// Commands that were not allowed to run; not counted in `finished`.
    pub declined: u64,
    /// The most recent finished and declined commands, oldest first.
    pub list: Vec<CommandReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandReport {
    /// As the agent gave it, without the shell wrapper; at most 2 KiB.
    pub command: String,
    /// The status that the agent reported.
    pub status: ItemStatus,
    /// Absent if the command was declined.
    pub exit_code: Option<i32>,
    /// Length of the full output.
    pub output_bytes: u64,
    /// The beginning of the output, or all of it if it is short. Empty for older commands.
    pub output_head: String,
    /// The end of the output, unless it is short.
    pub output_tail: String,
}

#[derive(Debug, Default)]
pub(super) struct CommandLog {
    /// Without the list.
    counts: Commands,
    records: VecDeque<Record>,
    /// Outputs of the last entries of `records`, in the same order.
    outputs: VecDeque<HeadAndTail>,
    tests: TestLog,
}

#[derive(Debug)]
struct Record {
    command: BoundedText,
    status: ItemStatus,
    exit_code: Option<i32>,
    output_bytes: u64,
}

impl CommandLog {
    pub(super) fn record(&mut self, finished: &FinishedCommand<'_, '_>) {
        let (command, status) = (finished.execution, finished.status);
        if !finished.is_declined() {
            self.tests.record(finished);
        }
        self.counts.finished += u64::from(!finished.is_declined());
        self.counts.failed += u64::from(finished.is_failure());
        self.counts.declined += u64::from(finished.is_declined());
        let reused = if self.records.len() >= MAX_COMMANDS { self.records.pop_front() } else { None };
        let mut command_text = reused.map(|record| record.command).unwrap_or_default();
        command_text.set(&command.command, MAX_COMMAND_BYTES);
        self.records.push_back(Record {
            command: command_text,
            status,
            exit_code: command.exit_code,
            output_bytes: command.output_bytes,
        });
        let reused = if self.outputs.len() >= MAX_OUTPUTS { self.outputs.pop_front() } else { None };
        let mut output = reused.unwrap_or_default();
        output.set(&command.output, command.output_tail.as_ref(), OUTPUT_HEAD_BYTES, OUTPUT_TAIL_BYTES);
        self.outputs.push_back(output);
    }

    pub(super) fn tests(&self) -> Option<TestReport> {
        self.tests.report()
    }

    pub(super) fn report(&self) -> Commands {
        let without_output = self.records.len() - self.outputs.len();
        let list = self.records.iter().enumerate().map(|(index, record)| {
            let output = index.checked_sub(without_output).and_then(|at| self.outputs.get(at));
            let (output_head, output_tail) = output.map(HeadAndTail::resolve).unwrap_or_default();
            CommandReport {
                command: shell::unwrap(&record.command.resolve()),
                status: record.status,
                exit_code: record.exit_code,
                output_bytes: record.output_bytes,
                output_head,
                output_tail,
            }
        });
        Commands { list: list.collect(), ..self.counts.clone() }
    }
}
