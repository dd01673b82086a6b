//! The report: plain facts. Which of them are shown where, and under which names, is decided by views.

use serde::Serialize;

use super::activity::OpenItem;
use super::commands::Commands;
use super::counts::Counts;
use super::failures::CommandFailure;
use super::files::FileOperations;
use super::notices::Notice;
use super::progress::Progress;
use super::recent::RecentLine;
use super::test_log::TestReport;
use super::usage::UsageReport;
use crate::map::{Dialect, MapWarning};

/// What a stream says happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What the stream is written in; nothing when no line was recognised.
    pub dialect: Option<Dialect>,
    /// With it the thread can be resumed.
    pub thread_id: Option<String>,
    /// The last turn. Asked before the end of the stream, [`TurnState::Running`] tells a stream that goes on from one
    /// that was interrupted; `outcome` does not.
    pub turn: TurnState,
    /// Turns begun.
    pub turns: u64,
    /// The verdict if the stream ends here.
    pub outcome: StreamOutcome,
    /// Nothing before the first turn.
    pub progress: Option<Progress>,
    /// In plain words; nothing when nothing is going on.
    pub current_activity: Option<String>,
    /// The last thing the agent said.
    pub final_message: Option<FinalMessage>,
    /// What became of files.
    pub files: FileOperations,
    /// What was run.
    pub commands: Commands,
    /// How its tests went; nothing when none ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestReport>,
    /// Commands that failed and were not made to succeed later, oldest first; the last twenty.
    pub failures: Vec<CommandFailure>,
    /// Calls of tools.
    pub mcp_calls: McpCalls,
    /// Web searches and pages opened.
    pub web_searches: u64,
    /// Sub-agents started.
    pub sub_agents: u64,
    /// The agent's plan as it stands.
    pub plan: Vec<PlanStep>,
    /// Steps of the plan that are too many to be listed.
    pub plan_steps_not_listed: u64,
    /// Tokens; nothing where the dialect does not tell.
    pub usage: Option<UsageReport>,
    /// Warnings of the agent's, each once. Never a failure.
    pub warnings: Vec<Notice>,
    /// Errors it got over or is still trying to, each once. Never a failure by themselves.
    pub transient_errors: Vec<Notice>,
    /// How many of them there were.
    pub transient_error_count: u64,
    /// Oddities of the stream.
    pub oddities: Vec<MapWarning>,
    /// What began and did not end.
    pub open_items: Vec<OpenItem>,
    /// Items told again, after the stream was cut or under the same id; not counted twice anywhere.
    pub repeated_items: u64,
    /// Whether the agent waits for a message (dialect 003).
    pub idle: bool,
    /// Whether the agent is done for good (dialect 003).
    pub done: bool,
    /// The last lines.
    pub recent_lines: Vec<RecentLine>,
    /// How many of what.
    pub counts: Counts,
}

impl Report {
    /// The final message as JSON, when it is a JSON object or array: the answer to a request with an output schema.
    pub fn structured_output(&self) -> Option<serde_json::Value> {
        let message = self.final_message.as_ref().filter(|message| !message.truncated)?;
        let value: serde_json::Value = serde_json::from_str(message.text.trim()).ok()?;
        (value.is_object() || value.is_array()).then_some(value)
    }
}

/// How the last turn stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// There was none.
    #[default]
    None,
    /// It is not over.
    Running,
    /// It is over.
    Completed,
    /// It failed.
    Failed,
    /// It was ended from outside, or the stream stopped in the middle of it.
    Interrupted,
}

/// How a stream ended, judged from the stream alone. The exit status of the process may know better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamOutcome {
    /// Well.
    Completed,
    /// Not well.
    Failed {
        /// The agent's reason.
        message: String,
    },
    /// Without an end: no terminal event.
    Interrupted,
    /// Streams of this kind never tell of an end (Codex before 0.44): ask the exit status.
    NotAnnounced,
}

/// What the agent said last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FinalMessage {
    /// At most 1 MiB of it.
    pub text: String,
    /// Bytes of it all.
    pub bytes: u64,
    /// Whether there is more than `text`.
    pub truncated: bool,
}

/// Calls of MCP tools that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct McpCalls {
    /// All.
    pub finished: u64,
    /// Those that failed.
    pub failed: u64,
    /// By tool, the first hundred tools.
    pub by_tool: Vec<ToolCalls>,
}

/// Calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolCalls {
    /// Whose.
    pub server: String,
    /// Which.
    pub tool: String,
    /// How often it ended.
    pub finished: u64,
    /// How often it failed.
    pub failed: u64,
}

/// A step of the agent's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanStep {
    /// What is to be done; at most 512 bytes.
    pub text: String,
    /// Whether it is.
    pub completed: bool,
}
