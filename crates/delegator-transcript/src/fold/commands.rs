//! Records the commands that the agent ran and how they ended.
//!
//! Counts are exact. The last [`MAX_COMMANDS`] commands are listed, the last [`MAX_OUTPUTS`] of them with the
//! beginning and end of their output.

use serde::{Deserialize, Serialize};

use super::bounded_text::head_and_tail;
use super::finished_command::FinishedCommand;
use crate::event::ItemStatus;

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

impl Commands {
    pub(super) fn record(&mut self, finished: &FinishedCommand<'_, '_>) {
        let (command, status) = (finished.execution, finished.status);
        self.finished += u64::from(!finished.is_declined());
        self.failed += u64::from(finished.is_failure());
        self.declined += u64::from(finished.is_declined());
        if self.list.len() >= MAX_COMMANDS {
            self.list.remove(0);
        }
        if let Some(oldest) = self.list.iter_mut().rev().nth(MAX_OUTPUTS - 1) {
            (oldest.output_head, oldest.output_tail) = Default::default();
        }
        let tail = command.output_tail.as_ref();
        let (output_head, output_tail) =
            head_and_tail(&command.output, tail, OUTPUT_HEAD_BYTES, OUTPUT_TAIL_BYTES);
        self.list.push(CommandReport {
            command: finished.script().to_owned(),
            status,
            exit_code: command.exit_code,
            output_bytes: command.output_bytes,
            output_head,
            output_tail,
        });
    }
}
