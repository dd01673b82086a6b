//! Counts lines, events and items. The counts are exact for streams of any size.

use std::collections::BTreeMap;

use delegator_domain::text::beginning;
use serde::{Deserialize, Serialize};

use crate::decode::{Event, IdleEvent};
use crate::event::ItemDetails;
use crate::framer::Line;
use crate::json::Text;
use crate::protocol::{ProtocolEvent, RolloutLine, RolloutPayload};
use crate::wire::acp::AgentMessage;
use crate::wire::app_server::ServerMessage;
use crate::wire::claude::ClaudeLine;

/// Bounds on the stored names of unknown types.
const MAX_NAMES: usize = 64;
const MAX_NAME_BYTES: usize = 128;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Lines, blank ones included.
    pub lines: u64,
    /// Bytes of the lines, without line ends.
    pub bytes: u64,
    pub blank: u64,
    /// Lines that are events of a known dialect.
    pub events: u64,
    /// Lines of JSON of an unknown kind.
    pub unknown: u64,
    pub not_json: u64,
    /// Lines too long to be stored whole.
    pub over_long: u64,
    /// Lines of a dialect other than the stream's.
    pub mixed_dialect: u64,
    /// Whether the last line had no line end.
    pub unterminated: bool,
    /// Lines by their `type`.
    pub by_type: BTreeMap<String, u64>,
    /// Completed items by type.
    pub items: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: Counts,
    types: NamedCounters,
    items: NamedCounters,
}

#[derive(Debug, Default)]
struct NamedCounters {
    /// Apart from the others, so that counting a line allocates nothing.
    known: Vec<(&'static str, u64)>,
    others: BTreeMap<String, u64>,
}

impl NamedCounters {
    fn count(&mut self, name: &'static str) {
        // Comparing addresses is enough: `report` adds up entries of the same name.
        match self.known.iter_mut().find(|(known, _)| std::ptr::eq(*known, name)) {
            Some((_, count)) => *count += 1,
            None => self.known.push((name, 1)),
        }
    }

    fn count_other(&mut self, name: &Text<'_>) {
        let name = name.resolve();
        let name = beginning(&name, MAX_NAME_BYTES);
        if let Some(count) = self.others.get_mut(name) {
            *count += 1;
        } else if self.others.len() < MAX_NAMES {
            self.others.insert(name.to_owned(), 1);
        } else {
            *self.others.entry("…".to_owned()).or_default() += 1;
        }
    }

    fn report(&self) -> BTreeMap<String, u64> {
        let mut all = self.others.clone();
        for (name, count) in &self.known {
            *all.entry((*name).to_owned()).or_default() += count;
        }
        all
    }
}

impl Tally {
    pub(super) fn count_line(&mut self, line: &Line<'_>, event: &Event<'_>) {
        self.counts.lines += 1;
        self.counts.bytes += line.length;
        self.counts.over_long += u64::from(line.is_truncated());
        self.counts.unterminated |= !line.terminated;
        match event {
            Event::Blank => self.counts.blank += 1,
            Event::NotJson => self.counts.not_json += 1,
            Event::Unknown { kind } => self.count_unknown(kind),
            Event::Rollout(RolloutLine {
                payload: RolloutPayload::Event(ProtocolEvent::Unknown { kind }),
                ..
            }) => self.count_unknown(kind),
            understood => {
                self.counts.events += 1;
                self.types.count(type_name(understood));
            }
        }
    }

    fn count_unknown(&mut self, kind: &Option<Text<'_>>) {
        self.counts.unknown += 1;
        if let Some(kind) = kind {
            self.types.count_other(kind);
        }
    }

    pub(super) fn count_item(&mut self, details: &ItemDetails<'_>) {
        match details {
            ItemDetails::Other { kind } => self.items.count_other(kind),
            known => self.items.count(known.type_name()),
        }
    }

    pub(super) fn report(&self, mixed_dialect: u64) -> Counts {
        Counts {
            by_type: self.types.report(),
            items: self.items.report(),
            mixed_dialect,
            ..self.counts.clone()
        }
    }
}

/// The `type` of a line; Codex protocol messages are counted together, because there are many types.
fn type_name(event: &Event<'_>) -> &'static str {
    match event {
        Event::Thread(event) => event.type_name(),
        Event::Idle(event) => match event {
            IdleEvent::AgentMessage { .. } | IdleEvent::UserMessage => "agent_message",
            IdleEvent::ToolCall { .. } => "tool_call",
            IdleEvent::ToolResult { .. } => "tool_result",
            IdleEvent::FileChange { .. } => "file_change",
            IdleEvent::Idle => "idle",
            IdleEvent::Done => "done",
        },
        Event::Rollout(line) => match &line.payload {
            RolloutPayload::SessionMeta(_) => "session_meta",
            RolloutPayload::TurnContext { .. } => "turn_context",
            RolloutPayload::Event(_) => "event_msg",
            RolloutPayload::Response(_) => "response_item",
            RolloutPayload::Other => "bookkeeping",
        },
        Event::Claude(line) => match line {
            ClaudeLine::Init { .. } => "init",
            ClaudeLine::Retry { .. } => "api_retry",
            ClaudeLine::Assistant(_) | ClaudeLine::ApiError(_) => "assistant",
            ClaudeLine::ToolResults(_) | ClaudeLine::Replay => "user",
            ClaudeLine::Result(_) => "result",
            ClaudeLine::RateLimit(_) => "rate_limit_event",
            ClaudeLine::ControlRequest { .. } => "control_request",
            ClaudeLine::ControlCancel { .. } => "control_cancel_request",
            ClaudeLine::ControlResponse { .. } => "control_response",
            ClaudeLine::SubAgent => "sub_agent",
            ClaudeLine::Other => "bookkeeping",
        },
        Event::Acp(message) => match message {
            AgentMessage::Update(_) => "session/update",
            AgentMessage::PermissionRequest { .. } => "session/request_permission",
            AgentMessage::OtherRequest { .. } => "request",
            AgentMessage::OtherNotification { .. } => "notification",
            AgentMessage::Result { .. } => "result",
            AgentMessage::Error { .. } => "error",
        },
        Event::AppServer(message) => match message {
            ServerMessage::Notification(_) => "notification",
            ServerMessage::Request { .. } => "request",
            ServerMessage::Response { .. } => "result",
            ServerMessage::Error { .. } => "error",
        },
        Event::Preamble => "preamble",
        Event::Sent | Event::AcpSent(_) | Event::AppServerSent(_) => "sent",
        Event::Plain { .. } => "text",
        _ => "msg",
    }
}
