//! A command that ended, as the logs of commands, tests and failures see it. Its command line is unwrapped
//! and parsed at most once, and only if one of them needs it.

use std::cell::OnceCell;

use super::bounded_text::BoundedText;
use crate::event::{CommandExecution, ItemStatus};
use crate::shell;
use crate::test_runs::command::ParsedCommand;

pub(super) const MAX_COMMAND_BYTES: usize = 2 << 10;

#[derive(Debug)]
pub(super) struct FinishedCommand<'c, 'a> {
    pub(super) execution: &'c CommandExecution<'a>,
    pub(super) status: ItemStatus,
    pub(super) workdir: Option<&'c str>,
    script: OnceCell<String>,
    parsed: OnceCell<ParsedCommand>,
}

impl<'c, 'a> FinishedCommand<'c, 'a> {
    pub(super) fn new(
        execution: &'c CommandExecution<'a>,
        status: ItemStatus,
        workdir: Option<&'c str>,
    ) -> Self {
        Self { execution, status, workdir, script: OnceCell::new(), parsed: OnceCell::new() }
    }

    /// The command line without the shell wrapper, truncated.
    pub(super) fn script(&self) -> &str {
        self.script.get_or_init(|| {
            let line = BoundedText::new(&self.execution.command, MAX_COMMAND_BYTES);
            shell::unwrap(&line.resolve())
        })
    }

    pub(super) fn parsed(&self) -> &ParsedCommand {
        self.parsed.get_or_init(|| ParsedCommand::from_script(self.script(), self.workdir))
    }

    pub(super) fn is_declined(&self) -> bool {
        self.status == ItemStatus::Declined
    }

    pub(super) fn is_failure(&self) -> bool {
        match self.status {
            ItemStatus::Failed => true,
            ItemStatus::Declined => false,
            _ => self.execution.exit_code.is_some_and(|code| code != 0),
        }
    }
}
