//! Messages of the Codex protocol.
//!
//! They occur in two places: inside `{"id":…,"msg":…}` in the output of `codex exec --json` before 0.44, and inside the
//! `event_msg` lines of session files (rollouts). Known types without a counterpart among Codex exec events are
//! [`ProtocolEvent::Ignored`]; all others are [`ProtocolEvent::Unknown`].

use crate::event::{FileChange, Item, McpToolCall, Todo, Usage};
use crate::json::Text;

/// One `EventMsg`.
#[derive(Clone, Debug)]
pub enum ProtocolEvent<'a> {
    /// `session_configured`; also the `session_meta` line of a session file.
    SessionConfigured {
        /// The thread id.
        session_id: Text<'a>,
    },
    /// `task_started`
    TaskStarted,
    /// `task_complete`
    TaskComplete {
        /// In newer versions, why the turn failed.
        error: Option<Text<'a>>,
    },
    /// `turn_aborted`
    TurnAborted,
    /// `user_message`
    UserMessage { message: Text<'a> },
    /// `agent_message`
    AgentMessage { message: Text<'a> },
    /// `agent_reasoning`
    AgentReasoning { text: Text<'a> },
    /// `exec_command_begin`
    ExecCommandBegin {
        /// Joins start and end.
        call_id: Text<'a>,
        /// The command line, quoted for a shell.
        command: Text<'a>,
    },
    /// `exec_command_end`
    ExecCommandEnd {
        /// Joins start and end.
        call_id: Text<'a>,
        /// stdout and stderr, merged.
        output: Text<'a>,
        exit_code: i32,
    },
    /// `mcp_tool_call_begin`
    McpToolCallBegin {
        /// Joins start and end.
        call_id: Text<'a>,
        call: McpToolCall<'a>,
    },
    /// `mcp_tool_call_end`
    McpToolCallEnd {
        /// Joins start and end.
        call_id: Text<'a>,
        /// The call and its result.
        call: McpToolCall<'a>,
        success: bool,
    },
    /// `patch_apply_begin`
    PatchApplyBegin {
        /// Joins start and end.
        call_id: Text<'a>,
        changes: Vec<FileChange<'a>>,
    },
    /// `patch_apply_end`
    PatchApplyEnd {
        /// Joins start and end.
        call_id: Text<'a>,
        /// Whether the patch was applied.
        success: bool,
        /// Present in newer versions.
        changes: Vec<FileChange<'a>>,
    },
    /// `web_search_end`
    WebSearchEnd {
        /// Identifies the search.
        call_id: Text<'a>,
        query: Text<'a>,
        /// Raw JSON.
        action: Option<&'a str>,
    },
    /// `plan_update`
    PlanUpdate {
        /// The whole plan.
        items: Vec<Todo<'a>>,
    },
    /// `token_count`
    TokenCount {
        /// The running total of the thread, if present.
        usage: Option<Usage>,
        /// In the oldest versions, the usage of the last request instead.
        request: Option<Usage>,
    },
    /// `error`
    Error {
        /// The error that ended the turn.
        message: Text<'a>,
    },
    /// `stream_error`
    StreamError {
        /// The error that is retried.
        message: Text<'a>,
    },
    /// `warning`, `deprecation_notice`
    Warning { message: Text<'a> },
    /// `item_started`, `item_completed`: used by newer versions for most of the above. The item id is the call id.
    TurnItem {
        /// True for `item_completed`.
        completed: bool,
        item: Item<'a>,
    },
    /// A known type without a counterpart among Codex exec events.
    Ignored {
        /// Its `type`.
        kind: Text<'a>,
    },
    /// An unknown type.
    Unknown {
        /// Its `type`, if any.
        kind: Option<Text<'a>>,
    },
}

/// A line printed ahead of a Codex protocol stream: the settings, then the prompt.
#[derive(Clone, Debug, Default)]
pub struct Preamble<'a> {
    /// In the settings line.
    pub model: Option<Text<'a>>,
    /// In the settings line.
    pub workdir: Option<Text<'a>>,
    /// In the prompt line.
    pub prompt: Option<Text<'a>>,
}

/// A line of a session file.
#[derive(Clone, Debug)]
pub struct RolloutLine<'a> {
    /// When the line was written, according to the file.
    pub timestamp: Option<Text<'a>>,
    pub payload: RolloutPayload<'a>,
}

/// The content of a line of a session file.
#[derive(Clone, Debug)]
pub enum RolloutPayload<'a> {
    /// `session_meta`: the thread and where it was started.
    SessionMeta(Box<SessionMeta<'a>>),
    /// `turn_context`: the settings of a turn.
    TurnContext {
        model: Option<Text<'a>>,
        /// Where commands run.
        cwd: Option<Text<'a>>,
    },
    /// `event_msg`: a message of the Codex protocol.
    Event(ProtocolEvent<'a>),
    /// `response_item`: input or output of the model.
    Response(ResponseItem<'a>),
    /// `compacted`, `world_state`, `token_usage_record` and other bookkeeping.
    Other {
        /// The line's `type`.
        kind: Text<'a>,
    },
}

/// The first line of a session file.
#[derive(Clone, Debug, Default)]
pub struct SessionMeta<'a> {
    /// The thread id.
    pub id: Text<'a>,
    pub timestamp: Option<Text<'a>>,
    pub cwd: Option<Text<'a>>,
    /// The program that started the session.
    pub originator: Option<Text<'a>>,
    /// Its version.
    pub cli_version: Option<Text<'a>>,
    pub model_provider: Option<Text<'a>>,
    /// The thread that this one continues under a new id.
    pub forked_from_id: Option<Text<'a>>,
    /// The thread of which this one is a sub-agent.
    pub parent_thread_id: Option<Text<'a>>,
    /// The commit at the start of the session.
    pub git_commit: Option<Text<'a>>,
    /// The branch at the start of the session.
    pub git_branch: Option<Text<'a>>,
    /// The URL of the repository.
    pub git_repository: Option<Text<'a>>,
}

/// Input or output of the model. Only what no protocol message repeats is decoded.
#[derive(Clone, Debug)]
pub enum ResponseItem<'a> {
    /// A `message` with the role `user`; it may also be context that the program added.
    UserText(Text<'a>),
    /// `function_call`, `custom_tool_call`, `local_shell_call`
    Call {
        /// Joins call and output.
        call_id: Text<'a>,
        name: Text<'a>,
        /// JSON in a string, or plain text for a custom tool.
        input: Text<'a>,
    },
    /// `function_call_output`, `custom_tool_call_output`
    Output {
        /// Joins call and output.
        call_id: Text<'a>,
        output: Text<'a>,
    },
    Other,
}
