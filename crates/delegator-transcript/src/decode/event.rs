//! A decoded line. Each dialect has events of its own until the translator converts them into Codex exec events.

use crate::event::ThreadEvent;
use crate::json::Text;
use crate::protocol::{ProtocolEvent, RolloutLine, RolloutPayload};
use crate::wire::acp::{AgentMessage, ClientMessage};
use crate::wire::app_server::{SentRequest, ServerMessage};
use crate::wire::claude::ClaudeLine;

/// One decoded line.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A Codex exec event.
    Thread(ThreadEvent<'a>),
    /// An event of the idle dialect.
    Idle(IdleEvent<'a>),
    /// A message of the Codex protocol, as `--json` printed it before 0.44.
    Protocol(ProtocolEvent<'a>),
    /// A line printed ahead of a Codex protocol stream.
    Preamble,
    /// A line of a session file.
    Rollout(RolloutLine<'a>),
    /// A message of Codex's app server.
    AppServer(AppServerEvent<'a>),
    /// A line of Claude Code.
    Claude(ClaudeLine<'a>),
    /// A message of the Agent Client Protocol.
    Acp(AcpEvent<'a>),
    /// A line of text of an agent that prints no events.
    Plain {
        text: Text<'a>,
        /// Of an over-long line, of which `text` is only the beginning: its length.
        full_bytes: Option<u64>,
    },
    /// A line that we sent to the agent.
    Sent,
    /// JSON of an unknown kind.
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
    /// Whether the line is an event of a known dialect.
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

/// A message between us and Codex's app server.
#[derive(Clone, Debug)]
pub enum AppServerEvent<'a> {
    /// We sent a request.
    Sent(SentRequest),
    Received(ServerMessage<'a>),
}

/// A message of the Agent Client Protocol, of one of its two directions.
#[derive(Clone, Debug)]
pub enum AcpEvent<'a> {
    /// We sent it.
    Sent(ClientMessage<'a>),
    /// The agent sent it.
    Received(AgentMessage<'a>),
}

/// An event of the idle dialect.
#[derive(Clone, Debug)]
pub enum IdleEvent<'a> {
    AgentMessage {
        content: Text<'a>,
    },
    /// A message to the agent, echoed (`agent_message` with the role `user`).
    UserMessage,
    ToolCall {
        name: Text<'a>,
        /// Joins call and result; empty if the agent gave none, in which case the result is not joined.
        call_id: Text<'a>,
        /// Raw JSON.
        arguments: Option<&'a str>,
    },
    ToolResult {
        /// Joins call and result; absent if the line is an echoed message to the agent.
        call_id: Option<Text<'a>>,
        output: Text<'a>,
        /// Present if the call failed.
        error: Option<Text<'a>>,
    },
    FileChange {
        path: Text<'a>,
        /// `write`, `edit` or `delete`.
        action: Text<'a>,
    },
    /// The turn is over; the agent accepts messages.
    Idle,
    /// The session is over.
    Done,
}
