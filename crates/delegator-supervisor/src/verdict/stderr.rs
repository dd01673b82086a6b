//! Extracts refused calls and the last error messages from standard error.
//!
//! Codex logs there (`2026-… ERROR codex_core::…`), prints `Error: …` if it cannot start, and otherwise prints free
//! text. A refused call produces no event, only a log line of its tool router. Memory is bounded for any input.

use std::collections::VecDeque;

use delegator_transcript::Dialect;
use serde::{Deserialize, Serialize};

use super::classify::classify;

const ROUTER_PREFIX: &str = "ERROR codex_core::tools::router: ";
const MAX_REFUSALS: usize = 20;
const MAX_LINE_BYTES: usize = 1024;

/// Summary of standard error, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct StderrDigest {
    refused: VecDeque<String>,
    refused_count: u64,
    /// The last line of a known class.
    classified: Option<String>,
    /// The last line marked as an error.
    last_error: Option<String>,
    last_line: Option<String>,
    active_writer: bool,
    no_sandbox_helper: bool,
    /// The lines are those of any program: nothing in them is interpreted.
    is_plain: bool,
    /// The previous line was the router's: lines without a timestamp continue it.
    in_router: bool,
}

/// Calls of the agent that its sandbox or its tools refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCalls {
    pub count: u64,
    /// The last of the agent's messages about them.
    pub last: Vec<String>,
}

impl StderrDigest {
    /// A digest for an agent with this dialect, if it has to be known.
    pub fn for_dialect(dialect: Option<Dialect>) -> StderrDigest {
        StderrDigest { is_plain: dialect == Some(Dialect::Plain), ..StderrDigest::default() }
    }

    pub fn of(text: &str) -> StderrDigest {
        let mut digest = StderrDigest::default();
        for line in text.lines() {
            digest.push_line(line);
        }
        digest
    }

    /// Adds a line. Returns whether it counts as activity: logs and connection problems do not.
    pub fn push_line(&mut self, line: &str) -> bool {
        let line = line.trim_end();
        if line.trim_start().is_empty() {
            return false;
        }
        if self.is_plain {
            self.last_line = Some(truncate(line));
            return true;
        }
        if is_routine_line(line) {
            return false;
        }
        if let Some((_, call)) = line.split_once(ROUTER_PREFIX) {
            self.in_router = true;
            self.record_refusal(call.strip_prefix("error=").unwrap_or(call));
            return true;
        }
        let is_log = is_log_line(line);
        if self.in_router && !is_log && !line.starts_with("Error: ") {
            return false;
        }
        self.in_router = false;
        if line.contains("Refusing to create helper binaries") {
            self.no_sandbox_helper = true;
            return false;
        }
        self.active_writer |= line.contains("already has an active writer");
        let is_error = line.starts_with("Error: ") || line.starts_with("error: ") || line.contains(" ERROR ");
        let class = classify(line);
        if class.is_some() {
            self.classified = Some(truncate(line));
        }
        if is_error {
            self.last_error = Some(truncate(line));
        }
        self.last_line = Some(truncate(line));
        !is_log && class.is_none()
    }

    fn record_refusal(&mut self, call: &str) {
        self.refused_count += 1;
        if self.refused.len() == MAX_REFUSALS {
            self.refused.pop_front();
        }
        self.refused.push_back(truncate(call));
    }

    pub fn refused_calls(&self) -> RefusedCalls {
        RefusedCalls { count: self.refused_count, last: self.refused.iter().cloned().collect() }
    }

    pub fn last_message(&self) -> Option<&str> {
        self.last_error.as_deref().or(self.last_line.as_deref())
    }

    /// The last line of a known class.
    pub fn classified(&self) -> Option<&str> {
        self.classified.as_deref()
    }

    /// Another process is writing to the thread.
    pub fn is_active_writer(&self) -> bool {
        self.active_writer
    }

    /// Sandboxed commands will fail: CODEX_HOME lies below the temporary directory.
    pub fn has_no_sandbox_helper(&self) -> bool {
        self.no_sandbox_helper
    }
}

/// Lines that Codex prints in every run or at every end.
fn is_routine_line(line: &str) -> bool {
    ["Reading additional input from stdin...", "Reading prompt from stdin..."].contains(&line)
        || line.contains("failed to record rollout items")
}

/// `2026-11-15T00:38:42.656307Z ERROR …`
fn is_log_line(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.len() > 20 && bytes[..4].iter().all(u8::is_ascii_digit) && bytes[4] == b'-' && bytes[10] == b'T'
}

fn truncate(text: &str) -> String {
    let mut end = text.len().min(MAX_LINE_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
