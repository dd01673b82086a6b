//! Messages of the Codex protocol.
//!
//! They occur in two places: inside `{"id":…,"msg":…}` in the output of `codex exec --json` before 0.44, and
//! inside the `event_msg` lines of session files (rollouts). Known types without a counterpart among Codex
//! exec events are [`ProtocolEvent::Ignored`]; all others are [`ProtocolEvent::Unknown`].

use serde::Serialize;

use crate::event::{AgentError, FileChange, Item, ItemDetails, McpToolCall, Todo, Usage};
use crate::json::Text;

/// One `EventMsg`. `call_id` joins start and end.
#[derive(Clone, Debug)]
pub enum ProtocolEvent<'a> {
    /// Also the `session_meta` line of a session file.
    SessionConfigured { session_id: Text<'a> },
    /// Also `turn_started`.
    TaskStarted,
    /// Also `turn_complete`. In newer versions with the reason, if the turn failed.
    TaskComplete { error: Option<AgentError<'a>> },
    /// The turn has no other end.
    TurnAborted,
    /// Also the item of a message of the user.
    UserMessage { message: Text<'a> },
    /// A whole message, a summary of the model's reasoning, a web search that ended, or a warning.
    Item(ItemDetails<'a>),
    /// The command line is quoted for a shell.
    ExecCommandBegin { call_id: Text<'a>, command: Text<'a> },
    /// The output is stdout and stderr, merged.
    ExecCommandEnd { call_id: Text<'a>, output: Text<'a>, exit_code: i32 },
    /// The call has no result yet.
    McpToolCallBegin { call_id: Text<'a>, call: McpToolCall<'a> },
    /// Some versions repeat neither server nor tool.
    McpToolCallEnd { call_id: Text<'a>, call: McpToolCall<'a>, success: bool },
    /// Nothing is written yet.
    PatchApplyBegin { call_id: Text<'a>, changes: Vec<FileChange<'a>> },
    /// The changes are present in newer versions.
    PatchApplyEnd { call_id: Text<'a>, success: bool, changes: Vec<FileChange<'a>> },
    /// The whole plan.
    PlanUpdate { items: Vec<Todo<'a>> },
    /// The running total of the thread; in the oldest versions, the usage of the last request instead.
    TokenCount { usage: Option<Usage>, request: Option<Usage> },
    /// The error that ended the turn.
    Error { error: AgentError<'a> },
    /// An error that is retried.
    StreamError { message: Text<'a> },
    /// `item_started`, `item_completed`: used by newer versions for most of the above. The item id is the
    /// call id.
    TurnItem { completed: bool, item: Item<'a> },
    /// A known type without a counterpart among Codex exec events.
    Ignored,
    /// Any other `type`, if there is one.
    Unknown { kind: Option<Text<'a>> },
}

#[derive(Clone, Debug)]
pub struct RolloutLine<'a> {
    /// When the line was written, according to the file.
    pub timestamp: Option<Text<'a>>,
    pub payload: RolloutPayload<'a>,
}

#[derive(Clone, Debug)]
pub enum RolloutPayload<'a> {
    /// `session_meta`: the thread and where it was started.
    SessionMeta(Box<RolloutHead>),
    /// `turn_context`: the settings of a turn.
    TurnContext { model: Option<Text<'a>>, cwd: Option<Text<'a>> },
    /// `event_msg`: a message of the Codex protocol.
    Event(ProtocolEvent<'a>),
    /// `response_item`: input or output of the model.
    Response(ResponseItem<'a>),
    /// `compacted`, `world_state`, `token_usage_record` and other bookkeeping.
    Other,
}

/// Metadata of a session. The git fields describe its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RolloutHead {
    pub thread_id: String,
    pub cwd: Option<String>,
    /// When the session started, according to the file.
    pub started_at: Option<String>,
    /// When the last line read was written, according to the file.
    pub last_at: Option<String>,
    pub model: Option<String>,
    pub model_provider: Option<String>,
    pub prompt: Option<String>,
    pub cli_version: Option<String>,
    /// The thread that this one continues under a new id.
    pub forked_from: Option<String>,
    pub git_commit: Option<String>,
    pub git_branch: Option<String>,
    pub git_repository: Option<String>,
}

/// Input or output of the model. Only what no protocol message repeats is decoded.
#[derive(Clone, Debug)]
pub enum ResponseItem<'a> {
    /// A `message` with the role `user`; it may also be context that the program added.
    UserText(Text<'a>),
    /// `function_call`, `custom_tool_call`, `local_shell_call`. The input is JSON, or plain text for a custom
    /// tool.
    Call { call_id: Text<'a>, name: Text<'a>, input: Text<'a> },
    /// `function_call_output`, `custom_tool_call_output`
    Output { call_id: Text<'a>, output: Text<'a> },
    /// Nothing that is missing elsewhere.
    Other,
}
