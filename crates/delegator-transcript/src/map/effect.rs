//! What follows from an event: Codex exec events, facts that they cannot express, and why a line has no
//! counterpart.

use serde::{Deserialize, Serialize};

use super::item_ids::ItemIds;
use crate::event::{Item, ItemDetails, ItemPhase, ItemStatus, ThreadEvent, Usage};
use crate::json::{Text, write};

#[derive(Clone, Debug)]
pub enum Effect<'a> {
    /// A Codex exec event.
    Emit(ThreadEvent<'a>),
    /// The current running total of the thread or of the stream. Codex exec events report it only at the end
    /// of a turn.
    Usage(Usage),
    /// The running total in US dollars.
    Cost(f64),
    /// What the thread had used before the stream.
    UsageBefore(Usage),
    /// When the usage limit that is exceeded is reset, in seconds since 1970; `None` if none is exceeded.
    LimitReset(Option<i64>),
    /// The turn was aborted; Codex exec events have no event for it.
    Interrupted,
    Idle,
    /// The agent has ended its session.
    Done,
    /// The stream is irregular.
    Warn(MapWarning),
    /// The line has no counterpart among Codex exec events.
    Unmapped(UnmappedReason),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapWarning {
    /// A command ended without a start event; nothing was emitted.
    CommandEndWithoutBegin { call_id: String },
    /// A patch ended without a start event; it was emitted if its end event named changes.
    PatchEndWithoutBegin { call_id: String },
    /// A call ended without a start event; it was emitted nevertheless.
    CallEndWithoutBegin { call_id: String },
}

/// Why a line has no counterpart among Codex exec events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnmappedReason {
    Blank,
    NotJson,
    /// JSON of an unknown kind.
    Unknown,
    /// A known type that Codex exec events leave out.
    Ignored,
    /// Stored, and part of a later event.
    Held,
    /// Repeats another line, or ends something that never started.
    Redundant,
    /// Settings and bookkeeping of a session.
    Context,
    Sent,
    /// An item of a type that is not documented; left out by `strict`, as are the following.
    UnknownItem,
    /// A patch that is not finished.
    PatchInProgress,
    /// A documented field is missing or has another type or value.
    InvalidField,
}

impl UnmappedReason {
    /// Whether the content of the line appears in no emitted event.
    pub fn is_lost(self) -> bool {
        match self {
            Self::NotJson | Self::Unknown | Self::Ignored | Self::Context => true,
            Self::UnknownItem | Self::PatchInProgress | Self::InvalidField => true,
            Self::Blank | Self::Held | Self::Redundant | Self::Sent => false,
        }
    }
}

/// Collects the effects of one line, and gives new items their ids.
#[derive(Debug)]
pub(super) struct Effects<'i, 'a> {
    pub(super) ids: &'i mut ItemIds,
    pub(super) list: Vec<Effect<'a>>,
}

impl<'a> Effects<'_, 'a> {
    pub(super) fn push(&mut self, effect: Effect<'a>) {
        self.list.push(effect);
    }

    pub(super) fn emit(&mut self, event: ThreadEvent<'a>) {
        self.push(Effect::Emit(event));
    }

    pub(super) fn unmapped(&mut self, reason: UnmappedReason) {
        self.push(Effect::Unmapped(reason));
    }

    pub(super) fn item(
        &mut self,
        phase: ItemPhase,
        id: Text<'a>,
        status: Option<ItemStatus>,
        details: ItemDetails<'a>,
    ) {
        self.emit(ThreadEvent::Item { phase, item: Item { id, status, details, full_bytes: None } });
    }

    /// Emits an item that runs; returns its id.
    pub(super) fn start_item(&mut self, details: ItemDetails<'a>) -> Text<'static> {
        let id = self.ids.next();
        self.item(ItemPhase::Started, id.clone(), Some(ItemStatus::InProgress), details);
        id
    }

    /// Emits an item without a status, which has no start.
    pub(super) fn complete_item(&mut self, details: ItemDetails<'a>) {
        let id = self.ids.next();
        self.item(ItemPhase::Completed, id, None, details);
    }
}

/// A tool's result as an MCP server writes it.
pub(super) fn tool_result(text: &Text<'_>, structured: Option<&str>) -> Text<'static> {
    let mut json = br#"{"content":[{"type":"text","text":"#.to_vec();
    write::string(&mut json, text);
    json.extend_from_slice(br#"}],"structured_content":"#);
    json.extend_from_slice(structured.unwrap_or("null").as_bytes());
    json.push(b'}');
    Text::owned(String::from_utf8(json).unwrap_or_default())
}
