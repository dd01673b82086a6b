//! Counts lines, events and items. The counts are exact for streams of any size.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{Event, IdleEvent, ItemDetails, ItemPhase, ThreadEvent};
use crate::framer::Line;
use crate::json::Text;
use crate::protocol::{ProtocolEvent, RolloutLine, RolloutPayload};

/// Bounds on the stored names of unknown types.
const MAX_NAMES: usize = 64;
const MAX_NAME_BYTES: usize = 128;

/// What a stream consists of.
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
    /// Lines that are not JSON.
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

/// Counters for known types are arrays, so that counting a line is one addition.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: Counts,
    types: NamedCounters<11>,
    items: NamedCounters<9>,
}

#[derive(Debug)]
struct NamedCounters<const N: usize> {
    known: [u64; N],
    others: BTreeMap<String, u64>,
}

impl<const N: usize> Default for NamedCounters<N> {
    fn default() -> Self {
        Self { known: [0; N], others: BTreeMap::new() }
    }
}

impl<const N: usize> NamedCounters<N> {
    fn count_other(&mut self, name: &Text<'_>) {
        let name = name.resolve();
        let name = name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default();
        if let Some(count) = self.others.get_mut(name) {
            *count += 1;
        } else if self.others.len() < MAX_NAMES {
            self.others.insert(name.to_owned(), 1);
        } else {
            *self.others.entry("…".to_owned()).or_default() += 1;
        }
    }

    fn report(&self, names: [&str; N]) -> BTreeMap<String, u64> {
        let known = names.iter().zip(self.known).filter(|(_, count)| *count > 0);
        let mut all = self.others.clone();
        for (name, count) in known {
            *all.entry((*name).to_owned()).or_default() += count;
        }
        all
    }
}

const KNOWN_TYPES: [&str; 11] = [
    "thread.started",
    "turn.started",
    "turn.completed",
    "turn.failed",
    "error",
    "item.started",
    "item.updated",
    "item.completed",
    "idle",
    "done",
    "preamble",
];

const KNOWN_ITEM_TYPES: [&str; 9] = [
    "agent_message",
    "reasoning",
    "command_execution",
    "file_change",
    "mcp_tool_call",
    "web_search",
    "todo_list",
    "error",
    "collab_tool_call",
];

impl Tally {
    pub(super) fn count_line(&mut self, line: &Line<'_>, event: &Event<'_>) {
        self.counts.lines += 1;
        self.counts.bytes += line.length;
        self.counts.over_long += u64::from(line.is_truncated());
        self.counts.unterminated |= !line.terminated;
        match event {
            Event::Blank => self.counts.blank += 1,
            Event::NotJson => self.counts.not_json += 1,
            Event::Unknown { kind } | Event::Protocol(ProtocolEvent::Unknown { kind }) => {
                self.count_unknown(kind)
            }
            Event::Rollout(RolloutLine {
                payload: RolloutPayload::Event(ProtocolEvent::Unknown { kind }),
                ..
            }) => self.count_unknown(kind),
            understood => {
                self.counts.events += 1;
                self.count_type(understood);
            }
        }
    }

    fn count_unknown(&mut self, kind: &Option<Text<'_>>) {
        self.counts.unknown += 1;
        if let Some(kind) = kind {
            self.types.count_other(kind);
        }
    }

    fn count_type(&mut self, event: &Event<'_>) {
        let index = match event {
            Event::Thread(event) => match event {
                ThreadEvent::ThreadStarted { .. } => 0,
                ThreadEvent::TurnStarted => 1,
                ThreadEvent::TurnCompleted { .. } => 2,
                ThreadEvent::TurnFailed { .. } => 3,
                ThreadEvent::Error { .. } => 4,
                ThreadEvent::Item { phase: ItemPhase::Started, .. } => 5,
                ThreadEvent::Item { phase: ItemPhase::Updated, .. } => 6,
                ThreadEvent::Item { phase: ItemPhase::Completed, .. } => 7,
            },
            Event::Idle(IdleEvent::Idle) => 8,
            Event::Idle(IdleEvent::Done) => 9,
            Event::Preamble(_) => 10,
            other => return self.types.count_other(&Text::plain(type_name(other))),
        };
        self.types.known[index] += 1;
    }

    pub(super) fn count_item(&mut self, details: &ItemDetails<'_>) {
        let index = match details {
            ItemDetails::AgentMessage { .. } => 0,
            ItemDetails::Reasoning { .. } => 1,
            ItemDetails::CommandExecution(_) => 2,
            ItemDetails::FileChange { .. } => 3,
            ItemDetails::McpToolCall(_) => 4,
            ItemDetails::WebSearch { .. } => 5,
            ItemDetails::TodoList { .. } => 6,
            ItemDetails::Error { .. } => 7,
            ItemDetails::CollabToolCall(_) => 8,
            ItemDetails::Other { kind } => return self.items.count_other(kind),
        };
        self.items.known[index] += 1;
    }

    pub(super) fn report(&self, mixed_dialect: u64) -> Counts {
        Counts {
            by_type: self.types.report(KNOWN_TYPES),
            items: self.items.report(KNOWN_ITEM_TYPES),
            mixed_dialect,
            ..self.counts.clone()
        }
    }
}

/// The `type` of a line of the other dialects; Codex protocol messages are counted together, because there are many
/// types.
fn type_name(event: &Event<'_>) -> &'static str {
    match event {
        Event::Idle(event) => match event {
            IdleEvent::AgentMessage { .. } | IdleEvent::UserMessage { .. } => "agent_message",
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
            RolloutPayload::Other { .. } => "bookkeeping",
        },
        Event::Plain { .. } => "text",
        _ => "msg",
    }
}
