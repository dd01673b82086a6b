//! Events of Codex's internal protocol.
//!
//! They reach us on two ways: inside `{"id":…,"msg":…}` from `codex exec --json` before 0.44, and inside the
//! `event_msg` lines of the session files (rollouts) Codex leaves under its home. What dialect 001 has no place for
//! is [`ProtocolEvent::Ignored`], by name; what we have never heard of is [`ProtocolEvent::Unknown`].

use crate::event::{FileChange, Item, McpToolCall, Todo, Usage};
use crate::json::Text;

/// One `EventMsg`.
#[derive(Clone, Debug)]
pub enum ProtocolEvent<'a> {
    /// `session_configured`; also what a session file's `session_meta` line says.
    SessionConfigured {
        /// The thread.
        session_id: Text<'a>,
    },
    /// `task_started`
    TaskStarted,
    /// `task_complete`
    TaskComplete {
        /// Newer versions say here why the turn failed.
        error: Option<Text<'a>>,
    },
    /// `turn_aborted`
    TurnAborted,
    /// `user_message`
    UserMessage {
        /// What the user asked for.
        message: Text<'a>,
    },
    /// `agent_message`
    AgentMessage {
        /// What the agent said.
        message: Text<'a>,
    },
    /// `agent_reasoning`
    AgentReasoning {
        /// What it thought.
        text: Text<'a>,
    },
    /// `exec_command_begin`
    ExecCommandBegin {
        /// Joins begin and end.
        call_id: Text<'a>,
        /// The command line, quoted for a shell.
        command: Text<'a>,
    },
    /// `exec_command_end`
    ExecCommandEnd {
        /// Joins begin and end.
        call_id: Text<'a>,
        /// Both streams, merged.
        output: Text<'a>,
        /// How it ended.
        exit_code: i32,
    },
    /// `mcp_tool_call_begin`
    McpToolCallBegin {
        /// Joins begin and end.
        call_id: Text<'a>,
        /// What is called.
        call: McpToolCall<'a>,
    },
    /// `mcp_tool_call_end`
    McpToolCallEnd {
        /// Joins begin and end.
        call_id: Text<'a>,
        /// What was called and what came back.
        call: McpToolCall<'a>,
        /// Whether it came back well.
        success: bool,
    },
    /// `patch_apply_begin`
    PatchApplyBegin {
        /// Joins begin and end.
        call_id: Text<'a>,
        /// What the patch would do.
        changes: Vec<FileChange<'a>>,
    },
    /// `patch_apply_end`
    PatchApplyEnd {
        /// Joins begin and end.
        call_id: Text<'a>,
        /// Whether it was applied.
        success: bool,
        /// Newer versions repeat the changes here.
        changes: Vec<FileChange<'a>>,
    },
    /// `web_search_end`
    WebSearchEnd {
        /// Names the search.
        call_id: Text<'a>,
        /// What for.
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
        /// The thread's running total, when the event has it.
        usage: Option<Usage>,
        /// The oldest versions tell what the last request used instead.
        request: Option<Usage>,
    },
    /// `error`
    Error {
        /// What ended the turn.
        message: Text<'a>,
    },
    /// `stream_error`
    StreamError {
        /// What is being retried.
        message: Text<'a>,
    },
    /// `warning`, `deprecation_notice`
    Warning {
        /// What the user should know.
        message: Text<'a>,
    },
    /// `item_started`, `item_completed`: how newer versions say most of the above. The id is the call id.
    TurnItem {
        /// Whether it is the end of the item.
        completed: bool,
        /// The item, in the words of dialect 001.
        item: Item<'a>,
    },
    /// Known, and not part of dialect 001.
    Ignored {
        /// Its `type`.
        kind: Text<'a>,
    },
    /// Not known.
    Unknown {
        /// Its `type`, if any.
        kind: Option<Text<'a>>,
    },
}

/// A line that precedes a stream of the internal protocol.
#[derive(Clone, Debug, Default)]
pub struct Preamble<'a> {
    /// The first line tells the settings: this one,
    pub model: Option<Text<'a>>,
    /// and this one, among others.
    pub workdir: Option<Text<'a>>,
    /// The second line tells the prompt.
    pub prompt: Option<Text<'a>>,
}

/// A line of a session file.
#[derive(Clone, Debug)]
pub struct RolloutLine<'a> {
    /// When it was written, as it says.
    pub timestamp: Option<Text<'a>>,
    /// What it says.
    pub payload: RolloutPayload<'a>,
}

/// What a line of a session file says.
#[derive(Clone, Debug)]
pub enum RolloutPayload<'a> {
    /// `session_meta`: who, where, with what.
    SessionMeta(Box<SessionMeta<'a>>),
    /// `turn_context`: the settings of a turn.
    TurnContext {
        /// The model asked.
        model: Option<Text<'a>>,
        /// Where commands run.
        cwd: Option<Text<'a>>,
    },
    /// `event_msg`: an event of the protocol.
    Event(ProtocolEvent<'a>),
    /// `response_item`: something the model said or was told.
    Response(ResponseItem<'a>),
    /// `compacted`, `world_state`, `token_usage_record` and whatever else there is: bookkeeping.
    Other {
        /// The line's `type`.
        kind: Text<'a>,
    },
}

/// The first line of a session file.
#[derive(Clone, Debug, Default)]
pub struct SessionMeta<'a> {
    /// The thread.
    pub id: Text<'a>,
    /// When it began.
    pub timestamp: Option<Text<'a>>,
    /// Where.
    pub cwd: Option<Text<'a>>,
    /// By which program.
    pub originator: Option<Text<'a>>,
    /// Of which version.
    pub cli_version: Option<Text<'a>>,
    /// Whose model.
    pub model_provider: Option<Text<'a>>,
    /// The thread it continues under a new id.
    pub forked_from_id: Option<Text<'a>>,
    /// The thread it is a sub-agent of.
    pub parent_thread_id: Option<Text<'a>>,
    /// The commit it began on.
    pub git_commit: Option<Text<'a>>,
    /// The branch it began on.
    pub git_branch: Option<Text<'a>>,
    /// Where the repository comes from.
    pub git_repository: Option<Text<'a>>,
}

/// Something the model said or was told. Only what no protocol event repeats is of use.
#[derive(Clone, Debug)]
pub enum ResponseItem<'a> {
    /// `message` of the user's, which may also be context the program added.
    UserText(Text<'a>),
    /// `function_call`, `custom_tool_call`, `local_shell_call`
    Call {
        /// Joins call and output.
        call_id: Text<'a>,
        /// Which tool.
        name: Text<'a>,
        /// With what: JSON in a string, or plain text for a custom tool.
        input: Text<'a>,
    },
    /// `function_call_output`, `custom_tool_call_output`
    Output {
        /// Joins call and output.
        call_id: Text<'a>,
        /// What the model was told.
        output: Text<'a>,
    },
    /// Anything else.
    Other,
}
