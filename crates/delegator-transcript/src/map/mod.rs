//! Translates every dialect into Codex exec events.
//!
//! [`Translator`] receives the events of a stream in order and returns [`Effect`]s: events to emit, facts for
//! the fold that Codex exec events cannot express, and, for every line without a counterpart, the reason. It
//! is a pure state machine; a warning is an effect, nothing is logged.
//!
//! The dialect of a stream is that of its first recognised line. `idle`, `done` and a preamble are only a
//! guess, until a more specific line arrives. Lines of another dialect are still translated, and counted.
//! They never start or end a turn of the stream. Only plain text cannot be recognised: the caller has to know
//! it.

mod acp;
mod app_server;
mod claude;
mod effect;
mod idle;
mod item_ids;
mod pending;
mod protocol;
mod response;
mod thread_start;

use serde::{Deserialize, Serialize};

use crate::decode::{Event, IdleEvent, decode};
use crate::event::{AgentError, Item, ItemDetails, ItemPhase, ThreadEvent};
use crate::framer::{Line, LineText};
use crate::json::Text;
use crate::protocol::{ProtocolEvent, RolloutLine, RolloutPayload};
use crate::wire::app_server::ServerMessage;
use crate::wire::claude::ClaudeLine;
use acp::AcpMapper;
use app_server::AppServerMapper;
use claude::ClaudeMapper;
use effect::Effects;
pub use effect::{Effect, MapWarning, UnmappedReason};
use idle::IdleMapper;
use item_ids::ItemIds;
use protocol::ProtocolMapper;
pub use thread_start::AssumedThread;
use thread_start::ThreadStart;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Codex exec events: `codex exec --json` since 0.44.
    Thread,
    /// The idle dialect, with `idle` and `done`.
    Idle,
    /// Messages of the Codex protocol, as printed before 0.44.
    Protocol,
    Rollout,
    /// Lines of text, which are the agent's message.
    Plain,
    /// Claude Code's `stream-json`, both directions.
    ClaudeStream,
    Acp,
    AppServer,
}

impl Dialect {
    /// Whether tokens are reported as totals of the stream. Codex's are those of the thread, earlier runs
    /// included. Claude Code's totals begin again at zero after a forced end, so its turns are added up.
    pub(crate) fn counts_usage_of_stream(self) -> bool {
        matches!(self, Self::ClaudeStream | Self::Acp)
    }

    /// Whether costs are reported as totals of the stream, not of the thread.
    pub(crate) fn counts_cost_of_stream(self) -> bool {
        self == Self::ClaudeStream
    }
}

#[derive(Debug, Default)]
pub struct Translator {
    dialect: Option<Dialect>,
    /// Number of lines from which the dialect was guessed; 0 once it is certain.
    guessed_from: u64,
    /// Only one turn is open at a time, whatever dialect its events have.
    turn_is_open: bool,
    mixed_lines: u64,
    ids: ItemIds,
    protocol: ProtocolMapper,
    idle: IdleMapper,
    claude: ClaudeMapper,
    acp: AcpMapper,
    app_server: AppServerMapper,
    /// Whether the first event of a stream without threads is an added `thread.started`; `None` once it was
    /// emitted.
    thread_start: Option<ThreadStart>,
}

impl Translator {
    /// A translator for a stream of this dialect, or of one that its lines show.
    pub fn new(dialect: Option<Dialect>) -> Self {
        Self { dialect, ..Self::default() }
    }

    /// Begins a stream of a dialect without threads (the idle dialect, plain text) with `thread.started`,
    /// because readers of Codex exec events expect it. See [`AssumedThread`] for its id.
    pub fn announcing(self, thread: AssumedThread) -> Self {
        Self { thread_start: ThreadStart::new(thread), ..self }
    }

    pub fn decode<'a>(&mut self, line: &Line<'_>, text: &'a LineText<'_>) -> Event<'a> {
        let full_bytes = line.is_truncated().then_some(line.length);
        let (LineText::Whole(stored) | LineText::Truncated { head: stored, .. }) = text;
        let event = match self.dialect {
            Some(Dialect::Plain) => Event::Plain { text: Text::plain(stored), full_bytes },
            _ => decode(text),
        };
        if let (Some(start), Event::Idle(_) | Event::Plain { .. }) = (&mut self.thread_start, &event) {
            start.read_line(stored);
        }
        event
    }

    pub fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    pub fn mixed_lines(&self) -> u64 {
        self.mixed_lines
    }

    /// Whether this kind of stream announces the end of a turn. Streams before 0.44 and session files of that
    /// age do not.
    pub fn announces_turn_ends(&self) -> bool {
        match self.dialect {
            Some(Dialect::Plain) => false,
            Some(Dialect::Protocol | Dialect::Rollout) => {
                self.protocol.announces_turn_ends(self.dialect == Some(Dialect::Rollout))
            }
            _ => true,
        }
    }

    /// The error that makes the turn a failure, if the turn has not ended yet.
    pub fn critical_error(&self) -> Option<&AgentError<'static>> {
        self.protocol.critical_error()
    }

    pub fn translate<'a>(&mut self, event: Event<'a>, sink: &mut impl FnMut(Effect<'a>)) {
        let dialect = match &event {
            Event::Thread(_) => Dialect::Thread,
            Event::Idle(_) => Dialect::Idle,
            Event::Unknown { .. } => return sink(Effect::Unmapped(UnmappedReason::Unknown)),
            Event::Protocol(_) | Event::Preamble => Dialect::Protocol,
            Event::Rollout(_) => Dialect::Rollout,
            Event::Claude(_) => Dialect::ClaudeStream,
            Event::Acp(_) | Event::AcpSent(_) => Dialect::Acp,
            Event::AppServer(_) | Event::AppServerSent(_) => Dialect::AppServer,
            Event::Plain { text, full_bytes } => return self.plain_line(text.clone(), *full_bytes, sink),
            Event::Sent => return sink(Effect::Unmapped(UnmappedReason::Sent)),
            Event::NotJson => return sink(Effect::Unmapped(UnmappedReason::NotJson)),
            Event::Blank => return sink(Effect::Unmapped(UnmappedReason::Blank)),
        };
        let is_guess = matches!(
            event,
            Event::Preamble
                | Event::Idle(IdleEvent::Idle | IdleEvent::Done)
                // Many programs print objects with an id and a result.
                | Event::AppServer(ServerMessage::Response { .. } | ServerMessage::Error { .. })
        );
        let is_own = self.record_dialect(dialect, is_guess);
        if !is_own && (is_turn_boundary(&event) || matches!(dialect, Dialect::Acp | Dialect::AppServer)) {
            return sink(Effect::Unmapped(UnmappedReason::Ignored));
        }
        if self.dialect == Some(Dialect::Idle) && self.guessed_from == 0 {
            self.start_thread(sink);
        }
        if let Event::Thread(mut event) = event {
            if let ThreadEvent::Item { item, .. } = &mut event {
                item.id = self.ids.of_agent(std::mem::take(&mut item.id));
            }
            self.follow_turn(&event);
            return sink(Effect::Emit(event));
        }
        let mut effects = Effects { ids: &mut self.ids, list: Vec::new() };
        match event {
            Event::Idle(event) => self.idle.apply(event, is_own.then_some(self.turn_is_open), &mut effects),
            Event::Protocol(event) => self.protocol.apply(event, &mut effects),
            Event::Rollout(line) => self.protocol.apply_rollout(line.payload, is_own, &mut effects),
            Event::Claude(line) => self.claude.apply(line, self.turn_is_open, &mut effects),
            Event::AcpSent(message) => self.acp.on_sent(message, &mut effects),
            Event::Acp(message) => self.acp.on_received(message, &mut effects),
            Event::AppServerSent(request) => self.app_server.on_sent(request, &mut effects),
            Event::AppServer(message) => self.app_server.on_received(message, &mut effects),
            _ => effects.unmapped(UnmappedReason::Context),
        }
        // The content of a line without an effect is part of a later event.
        if effects.list.is_empty() {
            effects.unmapped(UnmappedReason::Held);
        }
        for effect in effects.list {
            match &effect {
                Effect::Emit(event) => self.follow_turn(event),
                Effect::Interrupted => self.turn_is_open = false,
                _ => {}
            }
            sink(effect);
        }
    }

    /// The first line begins the only turn; each line is a message. The exit code of the agent ends the turn.
    fn plain_line<'a>(&mut self, text: Text<'a>, full_bytes: Option<u64>, sink: &mut impl FnMut(Effect<'a>)) {
        self.start_thread(sink);
        if !std::mem::replace(&mut self.turn_is_open, true) {
            sink(Effect::Emit(ThreadEvent::TurnStarted));
        }
        let details = ItemDetails::AgentMessage { text };
        let item = Item { id: self.ids.next(), status: None, details, full_bytes };
        sink(Effect::Emit(ThreadEvent::Item { phase: ItemPhase::Completed, item }));
    }

    fn start_thread<'a>(&mut self, sink: &mut impl FnMut(Effect<'a>)) {
        if let Some(start) = self.thread_start.take() {
            sink(Effect::Emit(ThreadEvent::ThreadStarted { thread_id: start.into_thread_id() }));
        }
    }

    /// Ends the stream: one of nothing but `idle` and `done` still begins a thread, and a message may be
    /// unfinished.
    pub fn finish<'a>(&mut self, sink: &mut impl FnMut(Effect<'a>)) {
        let mut effects = Effects { ids: &mut self.ids, list: Vec::new() };
        self.acp.flush_text(&mut effects);
        effects.list.into_iter().for_each(&mut *sink);
        if self.dialect == Some(Dialect::Idle) {
            self.start_thread(sink);
        }
    }

    fn follow_turn(&mut self, event: &ThreadEvent<'_>) {
        match event {
            ThreadEvent::TurnStarted => self.turn_is_open = true,
            ThreadEvent::TurnCompleted { .. } | ThreadEvent::TurnFailed { .. } => self.turn_is_open = false,
            _ => {}
        }
    }

    /// Returns whether a line of this dialect belongs to the stream, and updates the dialect.
    fn record_dialect(&mut self, dialect: Dialect, is_guess: bool) -> bool {
        match self.dialect {
            Some(known) if known == dialect => {
                // A guess stays a guess only while all lines are guesses.
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
}

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
        Event::Claude(line) => matches!(line, ClaudeLine::Init { .. } | ClaudeLine::Result(_)),
        _ => false,
    }
}
