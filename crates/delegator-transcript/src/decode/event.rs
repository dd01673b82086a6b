//! A decoded line. Each dialect has events of its own until the translator converts them into Codex exec
//! events.

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
    Idle(IdleEvent<'a>),
    /// A message of the Codex protocol, as `--json` printed it before 0.44.
    Protocol(ProtocolEvent<'a>),
    /// A line printed ahead of a Codex protocol stream.
    Preamble,
    /// A line of a session file.
    Rollout(RolloutLine<'a>),
    /// A message of Codex's app server.
    AppServer(AppServerEvent<'a>),
    Claude(ClaudeLine<'a>),
    /// A message of the Agent Client Protocol.
    Acp(AcpEvent<'a>),
    /// A line of text of an agent that prints no events.
    Plain {
        text: Text<'a>,
        /// The length of an over-long line; `text` is only its beginning.
        full_bytes: Option<u64>,
    },
    /// A line that we sent to the agent.
    Sent,
    /// JSON of an unknown kind.
    Unknown {
        /// Its `type`, if it has one.
        kind: Option<Text<'a>>,
    },
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
    Sent(SentRequest),
    Received(ServerMessage<'a>),
}

/// A message of the Agent Client Protocol, of one of its two directions.
#[derive(Clone, Debug)]
pub enum AcpEvent<'a> {
    Sent(ClientMessage<'a>),
    Received(AgentMessage<'a>),
}

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
