//! Extracts refused calls and the last error messages from standard error, in bounded memory.
//!
//! The lines of a plain agent are those of any program: nothing in them is interpreted.

use std::collections::VecDeque;

use delegator_domain::agents::AgentProtocol;
use delegator_domain::task::FailureKind;
use delegator_domain::text::beginning;
use serde::{Deserialize, Serialize};

use crate::agent::{Message, StderrLine, parse_stderr_line};

const MAX_REFUSALS: usize = 20;
const MAX_LINE_BYTES: usize = 1024;

#[derive(Debug, Clone)]
pub struct StderrDigest {
    protocol: AgentProtocol,
    refused: VecDeque<String>,
    refused_count: u64,
    /// The last line marked as an error. Its kind is removed when lines follow that show that the agent
    /// overcame it.
    last_error: Option<StoredLine>,
    last_line: Option<StoredLine>,
    /// Another process is writing to the thread.
    pub(super) is_active_writer: bool,
    /// The agent's warning that sandboxed commands will fail, because CODEX_HOME lies below the temporary
    /// directory.
    pub(crate) no_sandbox_helper: Option<String>,
    /// The previous line was about a refused call: lines without a prefix continue it.
    in_refusal: bool,
}

#[derive(Debug, Clone)]
struct StoredLine {
    text: String,
    is_log: bool,
    kind: Option<FailureKind>,
    /// The lines after it state its cause.
    announces_cause: bool,
}

/// Calls of the agent that its sandbox or its tools refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCalls {
    pub count: u64,
    pub last: Vec<String>,
}

impl StderrDigest {
    pub fn new(protocol: AgentProtocol) -> StderrDigest {
        StderrDigest {
            protocol,
            refused: VecDeque::new(),
            refused_count: 0,
            last_error: None,
            last_line: None,
            is_active_writer: false,
            no_sandbox_helper: None,
            in_refusal: false,
        }
    }

    /// Adds a line. Returns whether it counts as activity: logs and connection problems do not.
    pub fn push_line(&mut self, line: &str) -> bool {
        let line = line.trim_end();
        if line.trim_start().is_empty() {
            return false;
        }
        match parse_stderr_line(self.protocol, line) {
            StderrLine::Routine => false,
            StderrLine::Refusal(call) => {
                self.in_refusal = true;
                self.discard_overcome_kind(true);
                self.record_refusal(call);
                true
            }
            StderrLine::Message(Message { is_new: false, .. }) if self.in_refusal => false,
            StderrLine::NoSandboxHelper => {
                self.in_refusal = false;
                self.no_sandbox_helper = Some(beginning(line, MAX_LINE_BYTES).to_owned());
                false
            }
            StderrLine::Message(message) => {
                self.in_refusal = false;
                self.is_active_writer |= message.is_active_writer;
                if !message.is_new && self.extend_last_error(line) {
                    return false;
                }
                let announces_cause = message.is_error && !message.is_log && line.ends_with(':');
                let text = beginning(line, MAX_LINE_BYTES).to_owned();
                let (is_log, kind) = (message.is_log, message.kind);
                let stored = StoredLine { text, is_log, kind, announces_cause };
                if message.is_error {
                    self.last_error = Some(stored.clone());
                } else {
                    self.discard_overcome_kind(message.is_log);
                }
                self.last_line = Some(stored);
                !message.is_log && message.kind.is_none()
            }
        }
    }

    /// An error of the log is overcome if any line follows it. A printed one is the agent's last, and only
    /// lines of other programs can follow it; a line that is certainly of the agent (`by_agent`) shows that
    /// it was not.
    fn discard_overcome_kind(&mut self, by_agent: bool) {
        if let Some(error) = self.last_error.as_mut().filter(|error| error.is_log || by_agent) {
            error.kind = None;
        }
    }

    /// Adds a line to a printed error that announces its cause, such as `Error loading config.toml:`. Returns
    /// whether it belongs there.
    fn extend_last_error(&mut self, line: &str) -> bool {
        let Some(error) = self.last_error.as_mut().filter(|error| error.announces_cause) else {
            return false;
        };
        let is_drawing = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').starts_with('|');
        if !is_drawing {
            let text = format!("{} {}", error.text, line.trim_start());
            error.text = beginning(&text, MAX_LINE_BYTES).to_owned();
        }
        true
    }

    fn record_refusal(&mut self, call: &str) {
        self.refused_count += 1;
        if self.refused.len() == MAX_REFUSALS {
            self.refused.pop_front();
        }
        self.refused.push_back(beginning(call, MAX_LINE_BYTES).to_owned());
    }

    pub fn refused_calls(&self) -> RefusedCalls {
        RefusedCalls { count: self.refused_count, last: self.refused.iter().cloned().collect() }
    }

    fn last(&self) -> Option<&StoredLine> {
        self.last_error.as_ref().or(self.last_line.as_ref())
    }

    pub fn last_message(&self) -> Option<&str> {
        self.last().map(|line| line.text.as_str())
    }

    /// What the last message is about, if it is known. Earlier messages may have been overcome.
    pub fn failure_kind(&self) -> Option<FailureKind> {
        self.last().and_then(|line| line.kind)
    }
}
