//! Facts in texts of the agent that are no events: its standard error, the error of its turn, the output of a
//! plain agent.

use super::failures::CommandFailure;
use super::report::Report;
use super::test_log::test_report;
use crate::error_locations::parse;
use crate::map::Dialect;

#[derive(Clone, Copy, Debug)]
pub struct AgentTexts<'a> {
    /// The error that it reported, or the last line of its standard error.
    pub failure: &'a str,
    /// The end of its standard error.
    pub stderr: &'a str,
    pub exit_code: Option<i32>,
    pub workdir: Option<&'a str>,
}

impl Report {
    /// Adds the test results that a plain agent printed. Other agents report the commands that ran the tests.
    pub fn add_printed_tests(&mut self, texts: AgentTexts<'_>) {
        if self.dialect == Some(Dialect::Plain) {
            let output = self.final_message.as_ref().map(|message| message.text.as_str()).unwrap_or_default();
            self.tests = test_report("", &format!("{output}\n{}", texts.stderr), texts.exit_code);
        }
    }

    /// Adds the error that the agent failed with, if one of its texts names a location. Returns the error.
    pub fn add_own_failure(&mut self, texts: AgentTexts<'_>) -> Option<&CommandFailure> {
        let message = self.final_message.as_ref().map(|message| message.text.as_str()).unwrap_or_default();
        // The message of a model may mention locations that are no errors.
        let is_plain = self.dialect == Some(Dialect::Plain);
        let candidates = [(texts.failure, true), (texts.stderr, true), (message, is_plain)];
        let errors = candidates.into_iter().map(|(text, plain)| parse(text, None, texts.workdir, plain));
        let errors = errors.into_iter().find(|errors| !errors.locations.is_empty())?;
        self.failures.push(CommandFailure {
            command: String::new(),
            exit_code: texts.exit_code,
            message: errors.message,
            kind: errors.kind,
            places: errors.locations,
            directory: None,
        });
        self.failures.last()
    }
}
