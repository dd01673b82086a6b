//! Records the commands that the agent ran and how they ended.
//!
//! Counts are exact. The last [`MAX_COMMANDS`] commands are listed, the last [`MAX_OUTPUTS`] of them with the
//! beginning and end of their output.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::bounded_text::{BoundedText, HeadAndTail};
use super::finished_command::{FinishedCommand, MAX_COMMAND_BYTES};
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

/// The commands as they are stored for every end; the shell wrapper is removed only for a report.
#[derive(Debug, Default)]
pub(super) struct CommandLog {
    /// Without the list.
    counts: Commands,
    records: VecDeque<Record>,
}

#[derive(Debug)]
struct Record {
    command: BoundedText,
    status: ItemStatus,
    exit_code: Option<i32>,
    output_bytes: u64,
    /// Empty for older commands.
    output: HeadAndTail,
}

impl CommandLog {
    pub(super) fn record(&mut self, finished: &FinishedCommand<'_, '_>) {
        let (execution, status) = (finished.execution, finished.status);
        self.counts.finished += u64::from(!finished.is_declined());
        self.counts.failed += u64::from(finished.is_failure());
        self.counts.declined += u64::from(finished.is_declined());
        // Buffers of what is dropped are used again.
        let dropped = if self.records.len() >= MAX_COMMANDS { self.records.pop_front() } else { None };
        let mut command = dropped.map(|record| record.command).unwrap_or_default();
        command.set(&execution.command, MAX_COMMAND_BYTES);
        let oldest = self.records.iter_mut().rev().nth(MAX_OUTPUTS - 1);
        let mut output = oldest.map(|oldest| std::mem::take(&mut oldest.output)).unwrap_or_default();
        let tail = execution.output_tail.as_ref();
        output.set(&execution.output, tail, OUTPUT_HEAD_BYTES, OUTPUT_TAIL_BYTES);
        let (exit_code, output_bytes) = (execution.exit_code, execution.output_bytes);
        self.records.push_back(Record { command, status, exit_code, output_bytes, output });
    }

    pub(super) fn report(&self) -> Commands {
        let list = self.records.iter().map(|record| {
            let (output_head, output_tail) = record.output.resolve();
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
