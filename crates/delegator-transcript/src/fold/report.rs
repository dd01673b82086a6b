//! The report: typed facts. The renderers decide which of them are shown, and under which names.

use serde::{Deserialize, Serialize};

use super::activity::OpenItem;
use super::commands::Commands;
use super::counts::Counts;
use super::failures::CommandFailure;
use super::files::FileOperations;
use super::notices::Notice;
use super::progress::Progress;
use super::recent::RecentLine;
use super::test_log::{TestReport, test_report};
use super::usage::{CostReport, UsageReport};
use crate::error_locations::parse;
use crate::event::{ErrorCode, ItemStatus, McpToolCall};
use crate::map::{Dialect, MapWarning};

/// Bounds on the calls that are counted by tool.
const MAX_TOOLS: usize = 100;
const MAX_TOOL_NAME_BYTES: usize = 256;

/// What the stream says about a run. The default is the report of an empty stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The dialect of the stream; absent if no line was recognised.
    pub dialect: Option<Dialect>,
    /// Identifies the thread; needed to resume it.
    pub thread_id: Option<String>,
    /// The state of the last turn. Before the end of the stream, [`TurnState::Running`] distinguishes a
    /// stream that continues from one that was interrupted; `outcome` does not.
    pub turn: TurnState,
    pub turns: u64,
    /// The outcome if the stream ends here.
    pub outcome: StreamOutcome,
    /// Absent before the first turn.
    pub progress: Option<Progress>,
    /// The current activity in plain words; absent when the agent does nothing.
    pub current_activity: Option<String>,
    pub final_message: Option<FinalMessage>,
    pub files: FileOperations,
    pub commands: Commands,
    /// Test results; absent if no test ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestReport>,
    /// Commands that failed and have not succeeded since, oldest first; at most the last 20.
    pub failures: Vec<CommandFailure>,
    pub mcp_calls: McpCalls,
    pub web_searches: u64,
    pub sub_agents: u64,
    /// Number of items of unknown types, finished or not: what they did is unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_items: u64,
    pub plan: Vec<PlanStep>,
    /// Plan steps that exceed the bound and are not listed.
    pub plan_steps_not_listed: u64,
    /// Absent if the dialect does not report usage.
    pub usage: Option<UsageReport>,
    /// Absent if the agent does not report costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostReport>,
    /// When the usage limit that is exceeded is reset, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_resets_at: Option<i64>,
    /// Warnings of the agent, without duplicates. Never a failure.
    pub warnings: Vec<Notice>,
    /// Errors that were retried, without duplicates. Not a failure by themselves.
    pub transient_errors: Vec<Notice>,
    /// Number of transient errors, including duplicates.
    pub transient_error_count: u64,
    /// The last of them, if nothing followed it: why a stream without a terminal event ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unresolved_error: Option<String>,
    pub oddities: Vec<MapWarning>,
    pub open_items: Vec<OpenItem>,
    /// Items that were reported again after a reconnect or under the same id; they are counted once.
    pub repeated_items: u64,
    /// Whether the agent waits for a message (idle dialect).
    pub idle: bool,
    /// Whether the agent has ended its session (idle dialect).
    pub done: bool,
    pub recent_lines: Vec<RecentLine>,
    pub counts: Counts,
}

/// Texts of an agent that has ended, which are no events but may contain facts.
#[derive(Clone, Copy, Debug)]
pub struct AgentTexts<'a> {
    /// The error that it reported, or the last line of its standard error.
    pub failure: &'a str,
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

    /// The final message as JSON if it is a JSON object or array: the response to a request with an output
    /// schema.
    pub fn structured_output(&self) -> Option<serde_json::Value> {
        let message = self.final_message.as_ref().filter(|message| !message.truncated)?;
        let value: serde_json::Value = serde_json::from_str(message.text.trim()).ok()?;
        (value.is_object() || value.is_array()).then_some(value)
    }

    /// Adds what a later run on the same thread used, and its final message.
    pub fn add_final_turn(&mut self, later: &Report) {
        if later.final_message.is_some() {
            self.final_message.clone_from(&later.final_message);
        }
        self.turns = self.turns.saturating_add(later.turns);
        self.usage = match (self.usage, later.usage) {
            (Some(usage), Some(later)) => Some(usage.plus(later)),
            (usage, later) => later.or(usage),
        };
        self.cost = match (self.cost, later.cost) {
            (Some(cost), Some(later)) => Some(cost.plus(later)),
            (cost, later) => later.or(cost),
        };
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    #[default]
    None,
    Running,
    Completed,
    Failed,
    /// The turn was aborted, or the stream ended during it.
    Interrupted,
}

/// The outcome according to the stream alone. The exit status of the process may contradict it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamOutcome {
    Completed,
    Failed {
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<ErrorCode>,
    },
    /// The stream has no terminal event.
    #[default]
    Interrupted,
    /// Streams of this kind never announce an end (Codex before 0.44); the exit status decides.
    NotAnnounced,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalMessage {
    /// At most 1 MiB: the beginning, or the end of what a plain agent printed.
    pub text: String,
    pub bytes: u64,
    pub truncated: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpCalls {
    pub finished: u64,
    pub failed: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// By tool, for the first 100 tools.
    pub by_tool: Vec<ToolCalls>,
}

impl McpCalls {
    pub(super) fn count(&mut self, call: &McpToolCall<'_>, status: ItemStatus) {
        let failed = u64::from(status != ItemStatus::Completed);
        self.finished += 1;
        self.failed += failed;
        let (server, tool) = (call.server.resolve(), call.tool.resolve());
        let known = self.by_tool.iter_mut().find(|known| known.tool == tool && known.server == server);
        if let Some(known) = known {
            known.finished += 1;
            known.failed += failed;
        } else if self.by_tool.len() < MAX_TOOLS && server.len().max(tool.len()) <= MAX_TOOL_NAME_BYTES {
            let (server, tool) = (server.into_owned(), tool.into_owned());
            self.by_tool.push(ToolCalls { server, tool, finished: 1, failed });
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCalls {
    pub server: String,
    pub tool: String,
    pub finished: u64,
    pub failed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// Truncated to 512 bytes.
    pub text: String,
    pub completed: bool,
}
