//! Every dialect as dialect 001.
//!
//! [`Translator`] takes the events of a stream in order and returns what they are in 001, as [`Effect`]s: events to
//! emit, things the fold wants to know that 001 has no line for, and for every line without a place in 001 the
//! reason. It is a pure state machine: nothing is logged, a warning is an effect too.
//!
//! The dialect of a stream is that of its first recognised line; `idle`, `done` and a preamble settle it only until a
//! line comes that says more. Lines of another dialect later on are translated all the same, by their own rules, and
//! counted. But turns are the stream's own: a stray line of another dialect neither begins nor ends one.

mod idle;
mod pending;
mod protocol;
mod response;

use serde::Serialize;

use crate::event::{Event, IdleEvent, ThreadEvent, Usage};
use crate::json::Text;
use crate::protocol::{ProtocolEvent, RolloutLine, RolloutPayload};
use idle::IdleMapper;
use protocol::ProtocolMapper;

/// What a stream is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Dialect 001: Codex `exec --json`.
    Thread,
    /// Dialect 003: idle and done.
    Idle,
    /// The internal protocol as printed before 0.44.
    Protocol,
    /// A session file.
    Rollout,
}

/// What follows from an event.
#[derive(Clone, Debug)]
pub enum Effect<'a> {
    /// An event of 001.
    Emit(ThreadEvent<'a>),
    /// The thread's running total, now. 001 tells it at the end of a turn only.
    Usage(Usage),
    /// The turn was interrupted; 001 has no line for that.
    Interrupted,
    /// The agent waits for a message.
    Idle,
    /// The agent is done for good.
    Done,
    /// Something was odd.
    Warn(MapWarning),
    /// The line has no place in 001.
    Unmapped(UnmappedReason),
}

/// An oddity of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MapWarning {
    /// A command ended that never began; nothing was emitted.
    CommandEndWithoutBegin {
        /// Which.
        call_id: String,
    },
    /// A patch ended that never began; it was emitted if its end named changes.
    PatchEndWithoutBegin {
        /// Which.
        call_id: String,
    },
    /// A call ended that never began; it was emitted all the same.
    CallEndWithoutBegin {
        /// Which.
        call_id: String,
    },
}

/// Why a line has no place in 001.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnmappedReason {
    /// White space.
    Blank,
    /// Not JSON.
    NotJson,
    /// JSON that means nothing to us.
    Unknown,
    /// Known, and left out by the contract of 001.
    Ignored,
    /// Remembered, and part of a later event.
    Held,
    /// It says what another line said already, or the end of something that never began.
    Redundant,
    /// Settings and bookkeeping around a session.
    Context,
}

impl UnmappedReason {
    /// Whether what the line says is in no line of 001 at all.
    pub fn is_lost(self) -> bool {
        match self {
            Self::NotJson | Self::Unknown | Self::Ignored | Self::Context => true,
            Self::Blank | Self::Held | Self::Redundant => false,
        }
    }
}

/// Translates one stream.
#[derive(Debug, Default)]
pub struct Translator {
    dialect: Option<Dialect>,
    /// Lines the dialect is guessed from, which streams of other dialects may begin with too; none once it is known.
    guessed_from: u64,
    /// One turn at a time, whatever told of it.
    turn_is_open: bool,
    mixed_lines: u64,
    ids: ItemIds,
    protocol: ProtocolMapper,
    idle: IdleMapper,
}

/// Hands out `item_0`, `item_1`, … and steps over those the stream itself used.
#[derive(Debug, Default)]
struct ItemIds {
    next: u64,
}

impl ItemIds {
    fn next(&mut self) -> Text<'static> {
        let id = Text::owned(format!("item_{}", self.next));
        self.next += 1;
        id
    }

    fn reserve(&mut self, id: &Text<'_>) {
        let number = id.simple().and_then(|id| id.strip_prefix("item_")).and_then(|n| n.parse::<u64>().ok());
        if let Some(number) = number {
            self.next = self.next.max(number.saturating_add(1));
        }
    }
}

impl Translator {
    /// The dialect of the stream, once a line was recognised.
    pub fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// Lines that belong to another dialect than the stream.
    pub fn mixed_lines(&self) -> u64 {
        self.mixed_lines
    }

    /// Whether the end of a turn is something this stream would have told. Streams before 0.44 and session files of
    /// that age never do.
    pub fn announces_turn_ends(&self) -> bool {
        match self.dialect {
            Some(Dialect::Protocol | Dialect::Rollout) => self.protocol.announces_turn_ends(self.dialect),
            _ => true,
        }
    }

    /// The error that would make the turn a failure, if it has not ended yet.
    pub fn critical_error(&self) -> Option<&Text<'static>> {
        self.protocol.critical_error()
    }

    /// Takes the next event and hands what follows from it to `sink`.
    pub fn translate<'a>(&mut self, event: Event<'a>, sink: &mut impl FnMut(Effect<'a>)) {
        let dialect = match &event {
            Event::Thread(_) => Dialect::Thread,
            Event::Idle(_) => Dialect::Idle,
            Event::Protocol(ProtocolEvent::Unknown { .. }) | Event::Unknown { .. } => {
                return sink(Effect::Unmapped(UnmappedReason::Unknown));
            }
            Event::Protocol(_) | Event::Preamble(_) => Dialect::Protocol,
            Event::Rollout(_) => Dialect::Rollout,
            Event::NotJson => return sink(Effect::Unmapped(UnmappedReason::NotJson)),
            Event::Blank => return sink(Effect::Unmapped(UnmappedReason::Blank)),
        };
        let is_guess = matches!(event, Event::Preamble(_) | Event::Idle(IdleEvent::Idle | IdleEvent::Done));
        let is_own = self.record_dialect(dialect, is_guess);
        if !is_own && is_turn_boundary(&event) {
            return sink(Effect::Unmapped(UnmappedReason::Ignored));
        }
        let effects = match event {
            Event::Thread(event) => {
                if let ThreadEvent::Item { item, .. } = &event {
                    self.ids.reserve(&item.id);
                }
                self.follow_turn(&event);
                return sink(Effect::Emit(event));
            }
            Event::Idle(event) => self.idle.apply(event, is_own.then_some(self.turn_is_open), &mut self.ids),
            Event::Protocol(event) => self.protocol.apply(event, &mut self.ids),
            Event::Rollout(line) => self.rollout(line.payload, is_own),
            _ => vec![Effect::Unmapped(UnmappedReason::Context)],
        };
        for effect in effects {
            match &effect {
                Effect::Emit(event) => self.follow_turn(event),
                Effect::Interrupted => self.turn_is_open = false,
                _ => {}
            }
            sink(effect);
        }
    }

    fn follow_turn(&mut self, event: &ThreadEvent<'_>) {
        match event {
            ThreadEvent::TurnStarted => self.turn_is_open = true,
            ThreadEvent::TurnCompleted { .. } | ThreadEvent::TurnFailed { .. } => self.turn_is_open = false,
            _ => {}
        }
    }

    /// Whether a line of this dialect is one of the stream's own.
    fn record_dialect(&mut self, dialect: Dialect, is_guess: bool) -> bool {
        match self.dialect {
            Some(known) if known == dialect => {
                // Only guesses leave it a guess.
                let stays_guess = is_guess && self.guessed_from > 0;
                self.guessed_from = if stays_guess { self.guessed_from + 1 } else { 0 };
            }
            Some(_) if is_guess || self.guessed_from == 0 => {
                self.mixed_lines += 1;
                return false;
            }
            Some(_) | None => {
                self.mixed_lines += self.guessed_from;
                self.guessed_from = u64::from(is_guess);
                self.dialect = Some(dialect);
            }
        }
        true
    }

    fn rollout<'a>(&mut self, payload: RolloutPayload<'a>, is_own: bool) -> Vec<Effect<'a>> {
        match payload {
            RolloutPayload::SessionMeta(meta) => self.protocol.on_session(meta.id),
            RolloutPayload::Event(event) if is_own => self.protocol.apply_rollout(event, &mut self.ids),
            RolloutPayload::Event(event) => self.protocol.apply(event, &mut self.ids),
            RolloutPayload::Response(item) => self.protocol.on_response(item, &mut self.ids),
            RolloutPayload::TurnContext { .. } | RolloutPayload::Other { .. } => {
                vec![Effect::Unmapped(UnmappedReason::Context)]
            }
        }
    }
}

/// Whether the event begins or ends a turn by name.
fn is_turn_boundary(event: &Event<'_>) -> bool {
    match event {
        Event::Thread(event) => matches!(
            event,
            ThreadEvent::TurnStarted | ThreadEvent::TurnCompleted { .. } | ThreadEvent::TurnFailed { .. }
        ),
        Event::Protocol(event)
        | Event::Rollout(RolloutLine { payload: RolloutPayload::Event(event), .. }) => {
            matches!(
                event,
                ProtocolEvent::TaskStarted | ProtocolEvent::TaskComplete { .. } | ProtocolEvent::TurnAborted
            )
        }
        _ => false,
    }
}
