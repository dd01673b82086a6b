//! Lines of Claude Code: `claude -p --input-format stream-json --output-format stream-json --verbose`.
//!
//! Measured with 2.1.325. Nothing is printed before the first message. Each turn begins with `system/init`
//! and ends with `result`. An `assistant` line usually has one block of content, a `user` line the result of
//! one tool. Both sides send `control_request`s and answer them with a `control_response`. Lines of
//! sub-agents have a `parent_tool_use_id`.

mod errors;
mod tool;
mod turn_result;
mod write;

pub use tool::{AgentQuestion, PermissionRequest, TaskChange, ToolAction, ToolCall, ToolKind, ToolResult};
pub use turn_result::TurnResult;
pub use write::{allow_tool, answer_questions, deny_tool, interrupt, refuse_request, user_message};

use crate::event::ErrorCode;
use crate::json::{Ending, Object, Text};

#[derive(Clone, Debug)]
pub enum ClaudeLine<'a> {
    /// `system/init`: a turn begins.
    Init { session_id: Text<'a> },
    /// `system/api_retry`: a request to the model failed and is repeated.
    Retry { attempt: i64, max_attempts: i64, error: Text<'a> },
    /// `assistant`
    Assistant(Vec<Block<'a>>),
    /// An `assistant` line with the text of an API error, which `result` repeats.
    ApiError(Option<ErrorCode>),
    /// `user`: results of tools.
    ToolResults(Vec<ToolResult<'a>>),
    /// A message of ours, printed again because of `--replay-user-messages`.
    Replay,
    /// `result`: the turn has ended.
    Result(Box<TurnResult<'a>>),
    /// `rate_limit_event`
    RateLimit(RateLimit),
    /// The agent waits for our response.
    ControlRequest { request_id: Text<'a>, request: ControlRequest<'a> },
    /// The agent no longer waits for our response.
    ControlCancel { request_id: Text<'a> },
    /// The response to a request of ours.
    ControlResponse { request_id: Text<'a>, error: Option<Text<'a>> },
    /// A line of a sub-agent.
    SubAgent,
    /// Bookkeeping, and other lines that say nothing about the work.
    Other,
}

#[derive(Clone, Debug)]
pub enum Block<'a> {
    Text(Text<'a>),
    Thinking(Text<'a>),
    ToolUse(ToolCall<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests are refused until the limit is reset.
    pub is_exceeded: bool,
    /// Seconds since 1970.
    pub resets_at: Option<i64>,
}

#[derive(Clone, Debug)]
pub enum ControlRequest<'a> {
    /// `can_use_tool`
    Permission(PermissionRequest<'a>),
    /// Any other request.
    Unknown { subtype: Text<'a> },
}

impl<'a> ClaudeLine<'a> {
    /// Reads a line that the agent printed. `None` if it is none of Claude Code's.
    pub fn read(line: &'a str) -> Option<Self> {
        let line = Object::read(line);
        let kind = line.text("type").filter(|_| line.ending == Ending::Complete)?;
        Self::from_members(kind.simple()?, &line)
    }

    /// Interprets the members of a line whose `type` is `kind`. Other programs print lines of these types,
    /// too, so a line must have the members that make it one of Claude Code's.
    pub(crate) fn from_members(kind: &str, line: &Object<'a>) -> Option<Self> {
        let request_id = || line.text("request_id");
        Some(match kind {
            "system" | "assistant" | "user" if line.text("parent_tool_use_id").is_some() => Self::SubAgent,
            "system" => system_line(line)?,
            "assistant" => assistant_line(line)?,
            "user" => user_line(line)?,
            "result" if line.text("subtype").is_some() => Self::Result(Box::new(turn_result::read(line))),
            "rate_limit_event" => {
                let limit = line.object("rate_limit_info")?;
                let is_exceeded = limit.has_text("status", "rejected");
                Self::RateLimit(RateLimit { is_exceeded, resets_at: limit.integer("resetsAt") })
            }
            "control_request" => {
                Self::ControlRequest { request_id: request_id()?, request: control_request(line)? }
            }
            "control_cancel_request" => Self::ControlCancel { request_id: request_id()? },
            "control_response" => {
                let response = line.object("response")?;
                let request_id = response.text("request_id")?;
                let is_error = response.has_text("subtype", "error");
                let error = is_error.then(|| response.text("error").unwrap_or_default());
                Self::ControlResponse { request_id, error }
            }
            "stream_event" | "tool_progress" | "tool_use_summary" | "prompt_suggestion" | "auth_status" => {
                line.text("session_id")?;
                Self::Other
            }
            "keep_alive" => Self::Other,
            _ => return None,
        })
    }
}

fn system_line<'a>(line: &Object<'a>) -> Option<ClaudeLine<'a>> {
    let subtype = line.text("subtype")?;
    let number = |key: &str| line.integer(key).unwrap_or_default();
    Some(match subtype.simple().unwrap_or_default() {
        "init" => ClaudeLine::Init { session_id: line.text("session_id")? },
        "api_retry" => ClaudeLine::Retry {
            attempt: number("attempt"),
            max_attempts: number("max_retries"),
            error: line.text("error").unwrap_or_default(),
        },
        _ => ClaudeLine::Other,
    })
}

fn assistant_line<'a>(line: &Object<'a>) -> Option<ClaudeLine<'a>> {
    let message = line.object("message")?;
    // The model's name of messages that Claude Code wrote itself.
    if message.has_text("model", "<synthetic>") {
        return Some(ClaudeLine::ApiError(errors::code(line)));
    }
    Some(ClaudeLine::Assistant(message.list(&["content"], |block| {
        let block = block.object()?;
        let kind = block.text("type")?;
        Some(match kind.simple()? {
            "text" => Block::Text(block.text("text")?),
            "thinking" => Block::Thinking(block.text("thinking")?),
            "tool_use" => Block::ToolUse(tool::read_call(&block, line)?),
            _ => return None,
        })
    })))
}

fn user_line<'a>(line: &Object<'a>) -> Option<ClaudeLine<'a>> {
    let message = line.object("message")?;
    let results = message.list(&["content"], |block| tool::read_result(&block.object()?, line));
    let is_replay = line.is_true("isReplay");
    Some(if !results.is_empty() {
        ClaudeLine::ToolResults(results)
    } else if is_replay {
        ClaudeLine::Replay
    } else {
        ClaudeLine::Other
    })
}

fn control_request<'a>(line: &Object<'a>) -> Option<ControlRequest<'a>> {
    let request = line.object("request")?;
    let subtype = request.text("subtype")?;
    Some(match subtype.simple() {
        Some("can_use_tool") => ControlRequest::Permission(tool::read_permission(&request)?),
        _ => ControlRequest::Unknown { subtype },
    })
}
