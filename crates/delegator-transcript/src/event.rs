//! Codex exec events, as documented and as Codex emits them today. Every dialect is translated into them; the
//! fold consumes them and `normalize` writes them. Events borrow from the line; raw JSON is passed on
//! unparsed.

use delegator_domain::named_enum;
use serde::{Deserialize, Serialize};

use crate::json::Text;

#[derive(Clone, Debug, Default)]
pub struct AgentError<'a> {
    pub message: Text<'a>,
    pub code: Option<ErrorCode>,
}

impl AgentError<'_> {
    pub(crate) fn into_owned(self) -> AgentError<'static> {
        AgentError { message: self.message.into_owned(), code: self.code }
    }
}

#[derive(Clone, Debug)]
pub enum TurnOutcome<'a> {
    Completed,
    Interrupted,
    Failed(AgentError<'a>),
}

/// The agent's own code for an error: `codex_error_info` of Codex. Codes that do not decide what failed are
/// absent. `Connection`: the model could not be reached, or it responded with this HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    UsageLimit,
    RateLimit,
    Overloaded,
    Unauthorized,
    ModelNotFound,
    Sandbox,
    Connection { http_status: Option<u16> },
}

/// A Codex exec event. The usage is the running total of the thread, absent in dialects without usage.
/// `Error` is usually a retry in progress and does not decide the outcome.
#[derive(Clone, Debug)]
pub enum ThreadEvent<'a> {
    ThreadStarted { thread_id: Text<'a> },
    TurnStarted,
    TurnCompleted { usage: Option<Usage> },
    TurnFailed { error: AgentError<'a> },
    Item { phase: ItemPhase, item: Item<'a> },
    Error { message: Text<'a> },
}

impl ThreadEvent<'_> {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::ThreadStarted { .. } => "thread.started",
            Self::TurnStarted => "turn.started",
            Self::TurnCompleted { .. } => "turn.completed",
            Self::TurnFailed { .. } => "turn.failed",
            Self::Error { .. } => "error",
            Self::Item { phase, .. } => phase.name(),
        }
    }
}

named_enum! {
    pub enum ItemPhase {
        Started = "item.started",
        Updated = "item.updated",
        /// Finished, whether successful or not.
        Completed = "item.completed",
    }
}

#[derive(Clone, Debug)]
pub struct Item<'a> {
    /// `item_N`, unique within a stream.
    pub id: Text<'a>,
    /// Items of types without a status are complete once `item.completed` arrives.
    pub status: Option<ItemStatus>,
    pub details: ItemDetails<'a>,
    /// In an over-long line: the full length of the item's longest text, of which only the beginning is
    /// available.
    pub full_bytes: Option<u64>,
}

/// The type of an item and its fields. `Error` is a warning, never a failure. The query of a web search is
/// empty until it is known; its action (`search`, `open_page`, `find_in_page`, …) is raw JSON.
#[derive(Clone, Debug)]
pub enum ItemDetails<'a> {
    AgentMessage { text: Text<'a> },
    Reasoning { text: Text<'a> },
    CommandExecution(CommandExecution<'a>),
    FileChange { changes: Vec<FileChange<'a>> },
    McpToolCall(McpToolCall<'a>),
    WebSearch { query: Text<'a>, action: Option<&'a str> },
    TodoList { items: Vec<Todo<'a>> },
    Error { message: Text<'a> },
    CollabToolCall(CollabToolCall<'a>),
    Other { kind: Text<'a> },
}

impl ItemDetails<'_> {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::AgentMessage { .. } => "agent_message",
            Self::Reasoning { .. } => "reasoning",
            Self::CommandExecution(_) => "command_execution",
            Self::FileChange { .. } => "file_change",
            Self::McpToolCall(_) => "mcp_tool_call",
            Self::WebSearch { .. } => "web_search",
            Self::TodoList { .. } => "todo_list",
            Self::Error { .. } => "error",
            Self::CollabToolCall(_) => "collab_tool_call",
            Self::Other { .. } => "other",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct CommandExecution<'a> {
    pub command: Text<'a>,
    /// The output; in an over-long line, its beginning.
    pub output: Text<'a>,
    /// In an over-long line, the end of the output.
    pub output_tail: Option<Text<'a>>,
    /// Length of the full output.
    pub output_bytes: u64,
    /// Absent while the command runs and if it was declined.
    pub exit_code: Option<i32>,
    /// How long it ran, if the agent reports that.
    pub duration_ms: Option<u64>,
}

impl<'a> CommandExecution<'a> {
    pub(crate) fn started(command: Text<'a>) -> Self {
        Self { command, ..Self::default() }
    }

    /// With the whole output.
    pub(crate) fn ended(command: Text<'a>, output: Text<'a>, exit_code: Option<i32>) -> Self {
        let output_bytes = output.len() as u64;
        Self { command, output, output_bytes, exit_code, ..Self::default() }
    }
}

#[derive(Clone, Debug)]
pub struct FileChange<'a> {
    pub path: Text<'a>,
    pub kind: ChangeKind,
    /// The changed lines with their signs; empty if the agent does not write them.
    pub diff: Text<'a>,
}

named_enum! {
    pub enum ChangeKind {
        Add = "add",
        Delete = "delete",
        /// Also stands for unknown kinds.
        Update = "update",
    }
}

impl ChangeKind {
    /// Reads a name of Codex, which some formats begin with a capital letter.
    pub(crate) fn read(name: &str) -> Self {
        Self::from_name(&name.to_ascii_lowercase()).unwrap_or(Self::Update)
    }
}

#[derive(Clone, Debug, Default)]
pub struct McpToolCall<'a> {
    pub server: Text<'a>,
    pub tool: Text<'a>,
    /// Raw JSON, as is the result.
    pub arguments: Option<Text<'a>>,
    pub result: Option<Text<'a>>,
    pub error: Option<Text<'a>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Todo<'a> {
    pub text: Text<'a>,
    pub completed: bool,
}

#[derive(Clone, Debug, Default)]
pub struct CollabToolCall<'a> {
    /// `spawn_agent`, `wait`, `close_agent`, `send_input`, …
    pub tool: Text<'a>,
    pub sender_thread_id: Option<Text<'a>>,
    /// An array of thread ids, raw JSON.
    pub receiver_thread_ids: Option<&'a str>,
    pub prompt: Option<Text<'a>>,
    /// Raw JSON.
    pub agents_states: Option<Text<'a>>,
}

named_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ItemStatus {
        InProgress = "in_progress",
        Completed = "completed",
        Failed = "failed",
        /// Not allowed to run.
        Declined = "declined",
        Other = "other",
    }
}

impl ItemStatus {
    pub(crate) fn of_result(success: bool) -> Self {
        if success { Self::Completed } else { Self::Failed }
    }

    pub(crate) fn read(name: &str) -> Self {
        Self::from_name(name).unwrap_or(Self::Other)
    }
}

/// Token counts, as reported by the model provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: i64,
    /// The part of `input_tokens` that was read from the cache.
    pub cached_input_tokens: i64,
    /// The part of `input_tokens` that was written to the cache; not reported before 0.145.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_input_tokens: Option<i64>,
    pub output_tokens: i64,
    /// The part of `output_tokens` that was reasoning; not reported before 0.125.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_output_tokens: Option<i64>,
}

impl Usage {
    pub(crate) fn plus(self, more: Self) -> Self {
        self.combine(more, i64::saturating_add, |a, b| {
            a.or(b).map(|_| a.unwrap_or(0).saturating_add(b.unwrap_or(0)))
        })
    }

    /// Never below zero: a review reports zeros regardless of the thread's usage.
    pub(crate) fn minus(self, earlier: Self) -> Self {
        let difference = |total: i64, earlier: i64| total.saturating_sub(earlier).max(0);
        self.combine(earlier, difference, |total, earlier| Some(difference(total?, earlier.unwrap_or(0))))
    }

    fn combine(
        self,
        other: Self,
        count: impl Fn(i64, i64) -> i64,
        optional: impl Fn(Option<i64>, Option<i64>) -> Option<i64>,
    ) -> Self {
        Self {
            input_tokens: count(self.input_tokens, other.input_tokens),
            cached_input_tokens: count(self.cached_input_tokens, other.cached_input_tokens),
            cache_write_input_tokens: optional(self.cache_write_input_tokens, other.cache_write_input_tokens),
            output_tokens: count(self.output_tokens, other.output_tokens),
            reasoning_output_tokens: optional(self.reasoning_output_tokens, other.reasoning_output_tokens),
        }
    }
}

impl<'a> FileChange<'a> {
    pub(crate) fn of_path(path: Text<'a>, kind: ChangeKind) -> Self {
        Self { path, kind, diff: Text::default() }
    }

    pub(crate) fn into_owned(self) -> FileChange<'static> {
        FileChange { path: self.path.into_owned(), kind: self.kind, diff: self.diff.into_owned() }
    }

    pub(crate) fn stored_bytes(&self) -> usize {
        self.path.len() + self.diff.len()
    }
}

impl Todo<'_> {
    pub(crate) fn into_owned(self) -> Todo<'static> {
        Todo { text: self.text.into_owned(), completed: self.completed }
    }
}

impl McpToolCall<'_> {
    pub(crate) fn into_owned(self) -> McpToolCall<'static> {
        McpToolCall {
            server: self.server.into_owned(),
            tool: self.tool.into_owned(),
            arguments: self.arguments.map(Text::into_owned),
            result: self.result.map(Text::into_owned),
            error: self.error.map(Text::into_owned),
        }
    }
}
