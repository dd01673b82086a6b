//! All of it in one piece: lines in, report out.

use super::{Fold, FoldOptions, Report};
use crate::decode::decode;
use crate::event::{Event, IdleEvent, ThreadEvent};
use crate::framer::{Framer, Line, LineLimits};
use crate::map::{Dialect, Effect, Translator};

/// Follows one stream line by line: for whoever frames the stream himself because he stores the lines too.
#[derive(Debug, Default)]
pub struct Account {
    translator: Translator,
    fold: Fold,
}

/// What a supervisor wants to know of a line at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The line was understood.
    pub understood: bool,
    /// The agent got on with its work: an item or the beginning or end of a turn. Retries are not work.
    pub is_activity: bool,
    /// The turn is over, well or not.
    pub turn_ended: bool,
    /// Messages can be given now (dialect 003).
    pub idle: bool,
    /// The agent is done for good (dialect 003).
    pub done: bool,
}

impl Account {
    /// An account at the beginning of a stream.
    pub fn new(options: FoldOptions) -> Self {
        Self { translator: Translator::default(), fold: Fold::new(options) }
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &Line<'_>) -> Seen {
        self.line_with(line, |_| {})
    }

    /// Takes the next line and shows what follows from it.
    pub fn line_with(&mut self, line: &Line<'_>, mut show: impl FnMut(&Effect<'_>)) -> Seen {
        let text = line.text();
        let event = decode(&text);
        let mut seen = Seen {
            understood: event.is_understood(),
            idle: matches!(event, Event::Idle(IdleEvent::Idle)),
            done: matches!(event, Event::Idle(IdleEvent::Done)),
            ..Seen::default()
        };
        let Self { translator, fold } = self;
        fold.line(line, &event);
        translator.translate(event, &mut |effect| {
            if let Effect::Emit(event) = &effect {
                seen.is_activity |= !matches!(event, ThreadEvent::Error { .. });
                seen.turn_ended |=
                    matches!(event, ThreadEvent::TurnCompleted { .. } | ThreadEvent::TurnFailed { .. });
            }
            fold.effect(&effect);
            show(&effect);
        });
        seen
    }

    /// The stream is over.
    pub fn finish(&mut self) {
        self.fold.finish(&self.translator);
    }

    /// What the stream says so far.
    pub fn report(&self) -> Report {
        self.fold.report(&self.translator)
    }

    /// The thread, as soon as it is known.
    pub fn thread_id(&self) -> Option<&str> {
        self.fold.thread_id()
    }

    /// The dialect, as soon as it is known.
    pub fn dialect(&self) -> Option<Dialect> {
        self.translator.dialect()
    }
}

/// Follows one stream byte by byte.
#[derive(Debug, Default)]
pub struct Summarizer {
    framer: Framer,
    account: Account,
}

impl Summarizer {
    /// A summarizer at the beginning of a stream.
    pub fn new(options: FoldOptions, limits: LineLimits) -> Self {
        Self { framer: Framer::new(limits), account: Account::new(options) }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { framer, account } = self;
        framer.push(bytes, |line| {
            account.line(&line);
        });
    }

    /// What the stream says so far.
    pub fn report(&self) -> Report {
        self.account.report()
    }

    /// The stream is over.
    pub fn finish(mut self) -> Report {
        let Self { framer, account } = &mut self;
        framer.finish(|line| {
            account.line(&line);
        });
        account.finish();
        account.report()
    }
}
