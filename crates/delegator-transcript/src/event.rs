//! The one model every dialect is read into.
//!
//! [`ThreadEvent`] is dialect 001, as written and as Codex emits it today: what the fold folds and what `normalize`
//! writes. The other dialects keep their own events ([`IdleEvent`], [`ProtocolEvent`], [`RolloutLine`]) until the
//! translator has turned them into these. Everything borrows from the line; raw JSON stays raw.

use serde::Serialize;

use crate::json::Text;
use crate::protocol::{Preamble, ProtocolEvent, RolloutLine, RolloutPayload};

/// What one line is.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// Dialect 001.
    Thread(ThreadEvent<'a>),
    /// Dialect 003.
    Idle(IdleEvent<'a>),
    /// Codex's internal protocol, as `--json` printed it before 0.44.
    Protocol(ProtocolEvent<'a>),
    /// One of the lines that preceded such a stream.
    Preamble(Preamble<'a>),
    /// A line of a session file.
    Rollout(RolloutLine<'a>),
    /// JSON that means nothing to us. The line is kept by whoever has it.
    Unknown {
        /// Its `type`, if it has one.
        kind: Option<Text<'a>>,
    },
    /// Not JSON.
    NotJson,
    /// Nothing but white space.
    Blank,
}

impl Event<'_> {
    /// Whether the line means something to us.
    pub fn is_understood(&self) -> bool {
        !matches!(
            self,
            Self::Unknown { .. }
                | Self::NotJson
                | Self::Blank
                | Self::Protocol(ProtocolEvent::Unknown { .. })
                | Self::Rollout(RolloutLine {
                    payload: RolloutPayload::Event(ProtocolEvent::Unknown { .. }),
                    ..
                })
        )
    }
}

/// An event of dialect 001.
#[derive(Clone, Debug)]
pub enum ThreadEvent<'a> {
    /// `thread.started`
    ThreadStarted {
        /// Names the thread; with it the thread can be resumed.
        thread_id: Text<'a>,
    },
    /// `turn.started`
    TurnStarted,
    /// `turn.completed`
    TurnCompleted {
        /// The running total of the thread; absent where the dialect has none.
        usage: Option<Usage>,
    },
    /// `turn.failed`
    TurnFailed {
        /// Why.
        message: Text<'a>,
    },
    /// `item.started`, `item.updated`, `item.completed`
    Item {
        /// Which of the three.
        phase: ItemPhase,
        /// The item as it is now.
        item: Item<'a>,
    },
    /// `error`: mostly a retry that is under way. It decides nothing.
    Error {
        /// What went wrong.
        message: Text<'a>,
    },
}

/// How far an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemPhase {
    /// It began.
    Started,
    /// It changed.
    Updated,
    /// It is over, well or not.
    Completed,
}

/// One thing the agent did or is doing.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    /// `item_N`, unique within a stream.
    pub id: Text<'a>,
    /// As the agent names it; types without one are complete when they are completed.
    pub status: Option<ItemStatus>,
    /// What kind of thing, with its details.
    pub details: ItemDetails<'a>,
    /// Of an item of an over-long line: the bytes its longest text has there, of which only the beginning is here.
    pub full_bytes: Option<u64>,
}

/// What an item is about.
#[derive(Clone, Debug)]
pub enum ItemDetails<'a> {
    /// Something said to the user.
    AgentMessage {
        /// What.
        text: Text<'a>,
    },
    /// A summary of thoughts.
    Reasoning {
        /// Of these.
        text: Text<'a>,
    },
    /// A command.
    CommandExecution(CommandExecution<'a>),
    /// A patch to some files.
    FileChange {
        /// File by file.
        changes: Vec<FileChange<'a>>,
    },
    /// A call to a tool of an MCP server.
    McpToolCall(McpToolCall<'a>),
    /// A web search, or a page opened or searched.
    WebSearch {
        /// What for; empty until known.
        query: Text<'a>,
        /// `search`, `open_page`, `find_in_page`, … as raw JSON.
        action: Option<&'a str>,
    },
    /// The agent's plan.
    TodoList {
        /// Step by step.
        items: Vec<Todo<'a>>,
    },
    /// A warning: never a failure.
    Error {
        /// What the user should know.
        message: Text<'a>,
    },
    /// A call that concerns sub-agents.
    CollabToolCall(CollabToolCall<'a>),
    /// A type that came after us.
    Other {
        /// Its name.
        kind: Text<'a>,
    },
}

/// A command the agent ran.
#[derive(Clone, Debug, Default)]
pub struct CommandExecution<'a> {
    /// The command line.
    pub command: Text<'a>,
    /// What it printed; of an over-long line, the beginning of it.
    pub output: Text<'a>,
    /// Of an over-long line, the end of what it printed.
    pub output_tail: Option<Text<'a>>,
    /// Bytes it printed.
    pub output_bytes: u64,
    /// Absent while it runs and when it was declined.
    pub exit_code: Option<i32>,
}

/// A change to one file.
#[derive(Clone, Debug)]
pub struct FileChange<'a> {
    /// Where.
    pub path: Text<'a>,
    /// What.
    pub kind: ChangeKind,
}

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Add,
    /// It is gone.
    Delete,
    /// It is different. A kind we do not know is taken for this.
    Update,
}

impl ChangeKind {
    /// The word of dialect 001.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Delete => "delete",
            Self::Update => "update",
        }
    }

    pub(crate) fn from_name(name: &str) -> Self {
        match name {
            "add" | "Add" => Self::Add,
            "delete" | "Delete" => Self::Delete,
            _ => Self::Update,
        }
    }
}

/// A call to a tool of an MCP server.
#[derive(Clone, Debug, Default)]
pub struct McpToolCall<'a> {
    /// Whose tool.
    pub server: Text<'a>,
    /// Which tool.
    pub tool: Text<'a>,
    /// Called with this, raw JSON.
    pub arguments: Option<Text<'a>>,
    /// Answered with this, raw JSON.
    pub result: Option<Text<'a>>,
    /// Or failed with this message.
    pub error: Option<Text<'a>>,
}

/// A step of a plan.
#[derive(Clone, Debug)]
pub struct Todo<'a> {
    /// What is to be done.
    pub text: Text<'a>,
    /// Whether it is.
    pub completed: bool,
}

/// A call that starts, asks, awaits or ends sub-agents.
#[derive(Clone, Debug, Default)]
pub struct CollabToolCall<'a> {
    /// `spawn_agent`, `wait`, `close_agent`, `send_input`, …
    pub tool: Text<'a>,
    /// The other fields, raw JSON: `sender_thread_id`, `receiver_thread_ids`, `prompt`, `agents_states`.
    pub sender_thread_id: Option<Text<'a>>,
    /// An array of thread ids, raw JSON.
    pub receiver_thread_ids: Option<&'a str>,
    /// What a new agent was asked to do.
    pub prompt: Option<Text<'a>>,
    /// Raw JSON.
    pub agents_states: Option<Text<'a>>,
}

/// How an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Under way.
    InProgress,
    /// Over and well.
    Completed,
    /// Over and not well.
    Failed,
    /// Not allowed to begin.
    Declined,
    /// A word that came after us.
    Other,
}

impl ItemStatus {
    /// The agent's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Declined => "declined",
            Self::Other => "other",
        }
    }

    pub(crate) fn from_name(name: &str) -> Self {
        match name {
            "in_progress" => Self::InProgress,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "declined" => Self::Declined,
            _ => Self::Other,
        }
    }
}

/// Tokens, as the model's provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Read by the model.
    pub input_tokens: i64,
    /// Of these, from its cache.
    pub cached_input_tokens: i64,
    /// Of these, written to its cache; not said before 0.145.
    pub cache_write_input_tokens: Option<i64>,
    /// Written by the model.
    pub output_tokens: i64,
    /// Of these, thoughts; not said before 0.125.
    pub reasoning_output_tokens: Option<i64>,
}

/// An event of dialect 003.
#[derive(Clone, Debug)]
pub enum IdleEvent<'a> {
    /// Something said.
    AgentMessage {
        /// What.
        content: Text<'a>,
    },
    /// Something said to the agent, echoed (`agent_message` with the role `user`).
    UserMessage {
        /// What.
        content: Text<'a>,
    },
    /// A tool is called.
    ToolCall {
        /// Which.
        name: Text<'a>,
        /// Joins call and result; empty when the agent gives none, and then nothing is joined.
        call_id: Text<'a>,
        /// Raw JSON.
        arguments: Option<&'a str>,
    },
    /// It answered.
    ToolResult {
        /// Joins call and result; absent when the line is a message to the agent, echoed.
        call_id: Option<Text<'a>>,
        /// What it said.
        output: Text<'a>,
        /// Why it failed, if it did.
        error: Option<Text<'a>>,
    },
    /// A file was changed.
    FileChange {
        /// Which.
        path: Text<'a>,
        /// `write`, `edit` or `delete`.
        action: Text<'a>,
    },
    /// The turn is over; messages can be given.
    Idle,
    /// The session is over.
    Done,
}

impl Usage {
    /// Both together.
    pub(crate) fn plus(self, more: Self) -> Self {
        let sum = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_add(more.cached_input_tokens),
            cache_write_input_tokens: sum(self.cache_write_input_tokens, more.cache_write_input_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
            reasoning_output_tokens: sum(self.reasoning_output_tokens, more.reasoning_output_tokens),
        }
    }
}

impl FileChange<'_> {
    pub(crate) fn into_owned(self) -> FileChange<'static> {
        FileChange { path: self.path.into_owned(), kind: self.kind }
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
